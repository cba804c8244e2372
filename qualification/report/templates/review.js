"use strict";
(() => {
  const data = JSON.parse(document.getElementById("review").textContent), pair = data.mode === "ab";
  const at = (id) => document.getElementById(id), SECTIONS = ["begin", "rate", "done"];
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const make = (name, values = {}, ...children) => {
    const element = Object.assign(document.createElement(name), values);
    element.append(...children);
    return element;
  };

  /* include sha256.js */

  /* What was answered so far, kept in this browser under the name of what is rated. */
  const key = ["assay-review", data.version, ...data.bundles.map((bundle) => bundle.manifest_sha256)].join(":");
  let state = null, kept = true;
  const load = () => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } };
  const keep = () => {
    try { localStorage.setItem(key, JSON.stringify(state)); } catch { kept = false; }
    if (!kept) say("This browser keeps nothing: finish in one sitting and leave this page open.");
  };
  const say = (text) => { at("status").textContent = text; };
  const warn = (text) => {
    at("alert").textContent = text;
    if (text) at("alert").scrollIntoView({ block: "nearest" });
  };
  const random = (bytes) => [...crypto.getRandomValues(new Uint8Array(bytes))].map((b) => b.toString(16).padStart(2, "0")).join("");
  const uuid = () => {
    const h = random(16);
    return `${h.slice(0, 8)}-${h.slice(8, 12)}-4${h.slice(13, 16)}-a${h.slice(17, 20)}-${h.slice(20)}`;
  };

  /* Order and sides follow from the seed: sorted by hash, swapped by the first digit's parity. */
  const text = new TextEncoder();
  const arrange = async (seed) => {
    const keyed = [];
    for (const item of data.items) {
      const side = await sha256(text.encode(`${seed}:side:${item.workload_id}`));
      const clips = pair && parseInt(side[0], 16) % 2 ? [...item.clips].reverse() : item.clips;
      keyed.push([await sha256(text.encode(`${seed}:order:${item.workload_id}`)), { ...item, clips }]);
    }
    return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
  };
  const blank = (item) => ({ heard: item.clips.map(() => false), ratings: item.clips.map(() => ({})), preference: null, comment: "" });

  let items = [];
  const show = (name) => {
    SECTIONS.forEach((id) => { at(id).hidden = id !== name; });
    warn("");
    at(name).querySelector("h1").focus();
  };
  const titles = pair ? ["First clip", "Second clip"] : ["Clip"];
  const radios = (name, legend, choices, chosen, set) => {
    const box = make("fieldset", {}, make("legend", {}, legend));
    for (const [value, label] of choices) {
      const input = make("input", { type: "radio", name, value, checked: value === chosen });
      input.addEventListener("change", () => { set(value); keep(); });
      box.append(make("label", { className: "choice" }, input, label));
    }
    return box;
  };
  const player = (clip, index, answer) => {
    const audio = make("audio", { controls: true, preload: "auto", src: `data:audio/wav;base64,${clip.wav}` });
    const heard = make("p", { className: "heard small" });
    const mark = () => { heard.textContent = answer.heard[index] ? "✓ heard to its end" : "○ not yet heard to its end"; };
    audio.setAttribute("aria-label", titles[index]);
    audio.setAttribute("controlslist", "nodownload noplaybackrate");
    audio.addEventListener("ratechange", () => { audio.playbackRate = 1; });
    audio.addEventListener("play", () => {
      document.querySelectorAll("audio").forEach((other) => { if (other !== audio) other.pause(); });
    });
    audio.addEventListener("ended", () => {
      let played = 0;
      for (let i = 0; i < audio.played.length; i++) played += audio.played.end(i) - audio.played.start(i);
      if (played >= audio.duration - data.slack_seconds) { answer.heard[index] = true; keep(); mark(); }
    });
    mark();
    return [audio, heard];
  };
  const panel = (item, answer, clip, index) => {
    const box = make("section", { className: "clip" }, make("h2", {}, titles[index]), ...player(clip, index, answer));
    box.setAttribute("aria-label", titles[index]);
    data.scales.forEach((scale) => {
      const choices = data.words.map((word, i) => [String(i + 1), `${i + 1} ${word}`]);
      const chosen = answer.ratings[index][scale.id];
      box.append(radios(`${scale.id}-${index}`, `${scale.title}: ${scale.question}`, choices, chosen && String(chosen),
        (value) => { answer.ratings[index][scale.id] = Number(value); }));
    });
    return box;
  };
  const draw = () => {
    if (state.at >= items.length) { say(""); show("done"); return; }
    const item = items[state.at], answer = (state.answers[item.workload_id] ??= blank(item));
    at("progress").max = items.length;
    at("progress").value = state.at;
    at("progress-label").textContent = `${state.at} of ${items.length} rated`;
    at("title").textContent = `${pair ? "Pair" : "Clip"} ${state.at + 1} of ${items.length}: ${item.language}`;
    Object.assign(at("said"), { textContent: item.text, lang: item.tag, dir: item.direction });
    at("described").textContent = item.description;
    at("clips").replaceChildren(...item.clips.map((clip, index) => panel(item, answer, clip, index)));
    const choices = [["first", "the first"], ["second", "the second"], ["neither", "neither"]];
    at("preference").replaceChildren(...(pair ? [radios("preference", "Which do you prefer?", choices, answer.preference,
      (value) => { answer.preference = value; })] : []));
    at("comment").value = answer.comment;
    at("back").disabled = state.at === 0;
    say("");
    show("rate");
  };
  const missing = (answer) => [
    ...answer.heard.flatMap((heard, i) => (heard ? [] : [`${titles[i]}: listen to its end`])),
    ...answer.ratings.flatMap((ratings, i) =>
      data.scales.filter((scale) => !ratings[scale.id]).map((scale) => `${titles[i]}: rate ${scale.title.toLowerCase()}`)),
    ...(pair && !answer.preference ? ["say which you prefer"] : []),
  ];

  const move = (step) => { state.at += step; keep(); draw(); };
  at("comment").addEventListener("input", () => { state.answers[items[state.at].workload_id].comment = at("comment").value; keep(); });
  at("back").addEventListener("click", () => move(-1));
  at("answers").addEventListener("submit", (event) => {
    event.preventDefault();
    const lacking = missing(state.answers[items[state.at].workload_id]);
    if (lacking.length) { warn(`Not complete. ${lacking.join("; ")}.`); return; }
    if (state.at + 1 === items.length) state.ended = new Date().toISOString();
    move(1);
  });
  at("revise").addEventListener("click", () => move(-1));
  at("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    const fresh = { session: uuid(), seed: random(16), started: new Date().toISOString(), ended: null, at: 0, answers: {} };
    state = { ...(state ?? fresh), reviewer: at("reviewer").value };
    items = await arrange(state.seed);
    keep();
    draw();
  });

  at("anew").addEventListener("click", () => {
    if (!confirm("Forget the answers of this sitting? A record that was not saved is lost.")) return;
    try { localStorage.removeItem(key); } catch { /* nothing was kept */ }
    location.reload();
  });

  /* The record names the hashes that were computed here, from the bytes that were played. */
  const record = () => ({
    schema: "urn:assay:schema:review-record:v1", session: state.session, mode: data.mode, page_version: data.version,
    reviewer: state.reviewer, started_utc: state.started, ended_utc: state.ended, seed: state.seed, bundles: data.bundles,
    items: items.map((item) => {
      const answer = state.answers[item.workload_id];
      const clips = item.clips.map((clip, i) => (
        { bundle: clip.bundle, path: clip.path, sha256: clip.found, heard: answer.heard[i], ratings: answer.ratings[i] }));
      return { workload_id: item.workload_id, clips, preference: answer.preference, comment: answer.comment };
    }),
  });
  at("export").addEventListener("click", () => {
    const file = URL.createObjectURL(new Blob([`${JSON.stringify(record(), null, 2)}\n`], { type: "application/json" }));
    make("a", { href: file, download: "review.json" }).click();
    setTimeout(() => URL.revokeObjectURL(file), 10000);
    say("Saved as review.json.");
  });

  const run = async () => {
    const clips = data.items.flatMap((item) => item.clips);
    let other = 0;
    for (const clip of clips) {
      clip.found = await sha256(decode(clip.wav));
      other += clip.found === clip.sha256 ? 0 : 1;
    }
    document.documentElement.dataset.ready = "yes";
    if (other) { say(""); warn(`${other} of ${clips.length} clips are not those that were sealed; this page rates nothing.`); return; }
    state = load();
    say(`${clips.length} clips agree with their manifest. ${state ? "A sitting was begun in this browser; go on with it." : ""}`);
    if (state) { at("reviewer").value = state.reviewer; at("reviewer").readOnly = true; at("go").textContent = "Go on"; }
    show("begin");
  };
  run();
})();
