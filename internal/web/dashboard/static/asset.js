// The page of an asset: "Here" puts the time of the picture that is shown into its field, as h:mm:ss.s.
function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  const two = (n) => String(n).padStart(2, '0');
  const [h, m, s] = [36000, 600, 10].map((unit) => Math.floor(tenths / unit));
  return h + ':' + two(m % 60) + ':' + two(s % 60) + '.' + (tenths % 10);
}

document.addEventListener('click', (e) => {
  const take = e.target.closest('[data-take]');
  const video = document.getElementById('video');
  if (take && video) document.getElementById(take.dataset.take).value = clock(video.currentTime);
});
