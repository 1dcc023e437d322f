// The level meter: how loud each channel is.

const FLOOR = -60; // dBFS that the lowest mark stands for
const EACH = 100; // ms between looks

// meter shows a stream's sound on two bars until the function that it returns is called. A stream without sound has
// none.
export function meter(media, box) {
  box.hidden = !media.getAudioTracks().length;
  if (box.hidden) return () => {};
  const context = new AudioContext();
  const splitter = context.createChannelSplitter(2);
  context.createMediaStreamSource(media).connect(splitter);
  const channels = Array.from(box.children, (bar, i) => {
    const analyser = new AnalyserNode(context, { fftSize: 2048 });
    splitter.connect(analyser, i);
    return { bar, analyser };
  });
  const samples = new Float32Array(2048);
  const timer = setInterval(() => {
    if (document.hidden) return;
    let left = 0;
    channels.forEach(({ bar, analyser }, i) => {
      analyser.getFloatTimeDomainData(samples);
      let peak = samples.reduce((most, s) => Math.max(most, Math.abs(s)), 0);
      if (i === 0) left = peak;
      else if (peak === 0) peak = left; // mono
      bar.style.setProperty('--level', share(peak) + '%');
    });
  }, EACH);
  return () => {
    clearInterval(timer);
    context.close();
    box.hidden = true;
  };
}

// share is how much of a bar a peak fills, in percent.
function share(peak) {
  if (!peak) return 0;
  return Math.round(Math.min(1, Math.max(0, 1 - 20 * Math.log10(peak) / FLOOR)) * 100);
}
