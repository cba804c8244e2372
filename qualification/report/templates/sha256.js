  /* SHA-256 by the browser where the page is a secure context, else by hand: a file opened from disk may not be one. */
  const K = new Uint32Array(64), START = new Uint32Array(8);
  (() => {
    const primes = [];
    for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
    const fraction = (x) => Math.floor((x - Math.floor(x)) * 4294967296);
    primes.forEach((p, i) => { K[i] = fraction(Math.cbrt(p)); if (i < 8) START[i] = fraction(Math.sqrt(p)); });
  })();
  const sha256ByHand = (data) => {
    const size = Math.ceil((data.length + 9) / 64) * 64, bytes = new Uint8Array(size), view = new DataView(bytes.buffer);
    bytes.set(data);
    bytes[data.length] = 128;
    view.setUint32(size - 8, Math.floor(data.length / 536870912));
    view.setUint32(size - 4, data.length << 3);
    const h = Uint32Array.from(START), w = new Uint32Array(64), turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let at = 0; at < size; at += 64) {
      for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
      for (let i = 16; i < 64; i++) {
        const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
        const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
      }
      let [a, b, c, d, e, f, g, z] = h;
      for (let i = 0; i < 64; i++) {
        const t1 = (z + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
        const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        z = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
      }
      [a, b, c, d, e, f, g, z].forEach((value, i) => { h[i] += value; });
    }
    return [...h].map((value) => value.toString(16).padStart(8, "0")).join("");
  };
  const hex = (buffer) => [...new Uint8Array(buffer)].map((value) => value.toString(16).padStart(2, "0")).join("");
  const sha256 = async (data) =>
    globalThis.crypto?.subtle ? hex(await crypto.subtle.digest("SHA-256", data)) : sha256ByHand(data);
