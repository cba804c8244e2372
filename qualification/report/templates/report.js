"use strict";
(() => {
  /* Everything here works on what the page carries: WAV files of 44 header bytes and 16-bit mono PCM. */
  const HEADER = 44, RATE = 24000, WINDOW = 512, BANDS = 96;

  const decode = (uri) => Uint8Array.from(atob(uri.slice(uri.indexOf(",") + 1)), (c) => c.charCodeAt(0));

  /* include sha256.js */

  /* Magnitudes of a real window by an in-place radix-2 transform. */
  const cosine = Float32Array.from({ length: WINDOW / 2 }, (_, i) => Math.cos((2 * Math.PI * i) / WINDOW));
  const sine = Float32Array.from({ length: WINDOW / 2 }, (_, i) => -Math.sin((2 * Math.PI * i) / WINDOW));
  const hann = Float32Array.from({ length: WINDOW }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW));
  const bits = Math.log2(WINDOW);
  const reversed = Uint16Array.from({ length: WINDOW }, (_, i) => {
    let out = 0;
    for (let b = 0; b < bits; b++) out |= ((i >> b) & 1) << (bits - 1 - b);
    return out;
  });
  const re = new Float32Array(WINDOW), im = new Float32Array(WINDOW);
  const spectrum = (samples, at) => {
    for (let i = 0; i < WINDOW; i++) {
      re[reversed[i]] = ((samples[at + i] ?? 0) / 32768) * hann[i];
      im[reversed[i]] = 0;
    }
    for (let span = 1; span < WINDOW; span *= 2) {
      const stride = WINDOW / (2 * span);
      for (let block = 0; block < WINDOW; block += 2 * span) {
        for (let i = 0; i < span; i++) {
          const p = block + i, q = p + span, c = cosine[i * stride], s = sine[i * stride];
          const x = re[q] * c - im[q] * s, y = re[q] * s + im[q] * c;
          re[q] = re[p] - x; im[q] = im[p] - y; re[p] += x; im[p] += y;
        }
      }
    }
  };

  /* Rows of the picture: bands of equal width on the mel scale, up to 8 kHz. */
  const mel = (f) => 2595 * Math.log10(1 + f / 700), hertz = (m) => 700 * (10 ** (m / 2595) - 1);
  const edges = Array.from({ length: BANDS + 1 }, (_, i) => (hertz((mel(8000) * i) / BANDS) * WINDOW) / RATE);
  const stops = [[11, 10, 26], [48, 22, 94], [122, 31, 122], [203, 62, 95], [246, 128, 62], [253, 203, 108], [252, 253, 220]];
  const palette = Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1), left = Math.min(stops.length - 2, Math.floor(at)), mix = at - left;
    return stops[left].map((value, k) => value + (stops[left + 1][k] - value) * mix);
  });
  const paint = (canvas, samples) => {
    const columns = Math.min(720, Math.max(1, Math.floor(samples.length / 200)));
    const image = new ImageData(columns, BANDS);
    for (let x = 0; x < columns; x++) {
      spectrum(samples, Math.floor((x * (samples.length - WINDOW)) / Math.max(1, columns - 1)));
      for (let band = 0; band < BANDS; band++) {
        const low = Math.floor(edges[band]), high = Math.max(low + 1, Math.ceil(edges[band + 1]));
        let power = 0;
        for (let k = low; k < high; k++) power = Math.max(power, re[k] * re[k] + im[k] * im[k]);
        const level = (10 * Math.log10(power + 1e-9) + 42) / 72;
        const colour = palette[Math.max(0, Math.min(255, Math.round(level * 255)))];
        const at = 4 * ((BANDS - 1 - band) * columns + x);
        image.data.set([colour[0], colour[1], colour[2], 255], at);
      }
    }
    canvas.width = columns;
    canvas.height = BANDS;
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  /* The player: a button, and the spectrogram with a range slider laid over it. */
  const icons = { play: "M4 2l11 7-11 7z", pause: "M3 2h4v14H3zM11 2h4v14h-4z" };
  const icon = (name) => `<svg viewBox="0 0 18 18" aria-hidden="true"><path d="${icons[name]}"/></svg>`;
  const make = (name, attributes) => Object.assign(document.createElement(name), attributes);
  const dress = (voice) => {
    const player = voice.querySelector(".player"), audio = player.querySelector("audio"), title = audio.getAttribute("aria-label");
    const button = make("button", { className: "play", type: "button", innerHTML: icon("play") });
    const stage = make("div", { className: "stage" }), canvas = make("canvas", {});
    const head = make("div", { className: "head" }), veil = make("div", { className: "veil" });
    const slider = make("input", { type: "range", min: 0, max: 1000, value: 0 });
    slider.setAttribute("aria-label", `Position in ${title}`);
    stage.append(canvas, veil, head, slider);
    player.append(button, stage);
    player.classList.add("live");
    const show = () => {
      const share = audio.duration ? audio.currentTime / audio.duration : 0;
      head.style.left = `${share * 100}%`;
      veil.style.left = `${share * 100}%`;
      head.style.opacity = share > 0 ? 1 : 0;
      veil.style.opacity = share > 0 && share < 1 ? 1 : 0;
      slider.value = Math.round(share * 1000);
      if (!audio.paused) requestAnimationFrame(show);
    };
    const label = () => {
      button.innerHTML = icon(audio.paused ? "play" : "pause");
      button.setAttribute("aria-label", `${audio.paused ? "Play" : "Pause"} ${title}`);
      show();
    };
    button.addEventListener("click", () => {
      document.querySelectorAll("audio").forEach((other) => { if (other !== audio) other.pause(); });
      if (audio.paused) audio.play(); else audio.pause();
    });
    slider.addEventListener("input", () => {
      const seek = () => { audio.currentTime = (slider.value / 1000) * audio.duration; show(); };
      if (audio.duration) seek(); else { audio.addEventListener("loadedmetadata", seek, { once: true }); audio.load(); }
    });
    ["play", "pause", "ended", "seeked"].forEach((name) => audio.addEventListener(name, label));
    label();
    return canvas;
  };

  const rest = () => new Promise((resolve) => setTimeout(resolve));
  const run = async () => {
    const voices = [...document.querySelectorAll(".voice")], total = document.getElementById("hash-total");
    const canvases = voices.map(dress);
    let same = 0;
    for (const [index, voice] of voices.entries()) {
      const wav = decode(voice.querySelector("audio").src), pcm = wav.subarray(HEADER);
      paint(canvases[index], new Int16Array(wav.buffer, HEADER, Math.floor(pcm.length / 2)));
      const equal = (await sha256(pcm)) === voice.dataset.pcmSha256, state = voice.querySelector(".hash-state");
      state.textContent = equal ? "\u2713 re-checked" : "\u2715 differs from the record";
      state.classList.add(equal ? "same" : "other");
      same += equal ? 1 : 0;
      await rest();
    }
    if (voices.length) total.textContent = `${same} of ${voices.length} clips agree with their records.`;
    document.documentElement.dataset.ready = "yes";
  };
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((item) => { item.open = true; }));
  run();
})();
