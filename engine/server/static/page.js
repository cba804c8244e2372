// The page: asks for a stream, reads its parts as they come, plays and draws them. No library, nothing stored.
"use strict";

const RATE = 24000;
const SPEECH = "/v1/voice-design/speech";
const $ = (id) => document.getElementById(id);

let abort = null; // AbortController of the running request
let context = null; // AudioContext, made at the first click because browsers demand one
let heard = []; // Int16Array packets of the last request

// --- the request ---------------------------------------------------------------------------------------------------

function body() {
  const found = { text: $("text").value, voice_description: $("voice").value, language: $("language").value };
  if ($("seed").value) found.seed = Number($("seed").value);
  if ($("seconds").value) found.max_duration_seconds = Number($("seconds").value);
  return found;
}

function headers() {
  const found = { "Content-Type": "application/json" };
  if ($("token").value) found.Authorization = `Bearer ${$("token").value}`;
  return found;
}

function curlLine() {
  const quoted = JSON.stringify({ ...body(), stream: false, output_format: "wav" }).replaceAll("'", "'\\''");
  const token = $("token").value ? " -H \"Authorization: Bearer $ASSAY_AUTH_TOKEN\"" : "";
  return `curl -fsS ${location.origin}${SPEECH} -H 'Content-Type: application/json'${token} -d '${quoted}' -o speech.wav`;
}

// --- the multipart reader ------------------------------------------------------------------------------------------

// Yields {headers, bytes} for each part of a fetch response, as soon as the part is whole.
async function* parts(response) {
  const boundary = response.headers.get("Content-Type").split("boundary=")[1];
  const reader = response.body.getReader();
  const text = new TextDecoder();
  let buffer = new Uint8Array(0);

  async function more() {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream broke off");
    const joined = new Uint8Array(buffer.length + value.length);
    joined.set(buffer);
    joined.set(value, buffer.length);
    buffer = joined;
  }
  async function line() {
    for (let from = 0; ; ) {
      const at = buffer.indexOf(10, from);
      if (at > 0) {
        const found = text.decode(buffer.subarray(0, at - 1));
        buffer = buffer.subarray(at + 1);
        return found;
      }
      from = buffer.length;
      await more();
    }
  }

  for (;;) {
    const delimiter = await line();
    if (delimiter === `--${boundary}--`) return;
    if (delimiter !== `--${boundary}`) throw new Error("the stream lost its framing");
    const found = {};
    for (let header = await line(); header; header = await line()) {
      const [name, value] = header.split(": ");
      found[name.toLowerCase()] = value;
    }
    const size = Number(found["content-length"]);
    while (buffer.length < size + 2) await more();
    yield { headers: found, bytes: buffer.slice(0, size) };
    buffer = buffer.subarray(size + 2);
  }
}

// --- playing and drawing -------------------------------------------------------------------------------------------

let playAt = 0; // context time at which the next packet starts

function play(samples) {
  if (!context) return;
  const audio = context.createBuffer(1, samples.length, RATE);
  audio.copyToChannel(Float32Array.from(samples, (value) => value / 32768), 0);
  const source = context.createBufferSource();
  source.buffer = audio;
  source.connect(context.destination);
  playAt = Math.max(playAt, context.currentTime + 0.02);
  source.start(playAt);
  playAt += audio.duration;
}

function draw() {
  const canvas = $("wave");
  const pen = canvas.getContext("2d");
  const total = heard.reduce((sum, packet) => sum + packet.length, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.strokeStyle = getComputedStyle(canvas).color;
  pen.beginPath();
  let index = 0;
  let peak = 0;
  let column = 0;
  for (const packet of heard) {
    for (const sample of packet) {
      peak = Math.max(peak, Math.abs(sample));
      index += 1;
      if (index >= ((column + 1) * total) / canvas.width) {
        const height = (peak / 32768) * (canvas.height / 2 - 2);
        pen.moveTo(column + 0.5, canvas.height / 2 - height);
        pen.lineTo(column + 0.5, canvas.height / 2 + height + 1);
        column += 1;
        peak = 0;
      }
    }
  }
  pen.stroke();
}

function saveWav() {
  const size = heard.reduce((sum, packet) => sum + packet.byteLength, 0);
  const header = new DataView(new ArrayBuffer(44));
  const ascii = (at, word) => [...word].forEach((letter, i) => header.setUint8(at + i, letter.charCodeAt(0)));
  ascii(0, "RIFF"); header.setUint32(4, 36 + size, true); ascii(8, "WAVEfmt ");
  header.setUint32(16, 16, true); header.setUint16(20, 1, true); header.setUint16(22, 1, true);
  header.setUint32(24, RATE, true); header.setUint32(28, RATE * 2, true);
  header.setUint16(32, 2, true); header.setUint16(34, 16, true);
  ascii(36, "data"); header.setUint32(40, size, true);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([header, ...heard], { type: "audio/wav" }));
  link.download = "speech.wav";
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- one utterance -------------------------------------------------------------------------------------------------

function state(name, message) {
  document.body.dataset.state = name;
  $("status").value = message;
  $("speak").disabled = name === "speaking";
  $("stop").disabled = name !== "speaking";
  $("save").disabled = name === "speaking" || heard.length === 0;
}

function report(event, begun) {
  const total = heard.reduce((sum, packet) => sum + packet.length, 0);
  $("duration").textContent = `${(total / RATE).toFixed(2)} s`;
  document.body.dataset.samples = String(total);
  if (total) $("rtf").textContent = ((performance.now() - begun) / 1000 / (total / RATE)).toFixed(3);
  if (event) $("reason").textContent = event.finish_reason;
}

async function speak() {
  abort = new AbortController();
  heard = [];
  playAt = 0;
  for (const id of ["ttfa", "rtf", "duration", "reason", "used-seed"]) $(id).textContent = "–";
  state("speaking", "Asking…");
  const begun = performance.now();
  const response = await fetch(SPEECH, {
    method: "POST", headers: headers(), body: JSON.stringify(body()), signal: abort.signal,
  });
  if (response.status === 401) $("token-box").hidden = false;
  if (!response.ok) throw new Error((await response.json()).detail);
  let end = null;
  for await (const part of parts(response)) {
    if (part.headers["content-type"] === "application/json") {
      const event = JSON.parse(new TextDecoder().decode(part.bytes));
      if (event.type === "start") $("used-seed").textContent = String(event.seed);
      if (event.type === "error") throw new Error(event.error.detail);
      if (event.type === "end") end = event;
    } else {
      if (heard.length === 0) {
        $("ttfa").textContent = `${Math.round(performance.now() - begun)} ms`;
        state("speaking", "Speaking…");
      }
      const samples = new Int16Array(part.bytes.buffer);
      heard.push(samples);
      play(samples);
      report(null, begun);
      requestAnimationFrame(draw);
    }
  }
  if (!end) throw new Error("the stream ended without its end part");
  report(end, begun);
  draw();
  state("done", "Done.");
}

async function start(event) {
  event.preventDefault();
  try {
    if (context) await context.close();
    context = window.AudioContext ? new AudioContext({ sampleRate: RATE }) : null;
    await speak();
  } catch (error) {
    state(error.name === "AbortError" ? "stopped" : "failed", error.name === "AbortError" ? "Stopped." : error.message);
  }
}

function stop() {
  if (abort) abort.abort();
  if (context) context.close();
  context = null;
}

async function begin() {
  $("form").addEventListener("submit", start);
  $("form").addEventListener("input", () => { $("curl").textContent = curlLine(); });
  $("stop").addEventListener("click", stop);
  $("save").addEventListener("click", saveWav);
  $("copy").addEventListener("click", () => navigator.clipboard.writeText(curlLine()));
  $("curl").textContent = curlLine();
  const response = await fetch("/v1/capabilities");
  $("token-box").hidden = response.status !== 401;
  const known = await response.json();
  $("model").textContent = response.ok ? `${known.model}, ${known.max_concurrent_requests} at a time` : known.detail;
  for (const language of (known.languages || []).slice(1)) $("language").add(new Option(language));
}

begin();
