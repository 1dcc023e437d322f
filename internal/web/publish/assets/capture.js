// Cameras, microphones and screens: what the browser gives, and why it does not.

// Sizes and bit rates of the qualities.
export const QUALITY = { 480: [854, 480, 1_000_000], 720: [1280, 720, 2_500_000], 1080: [1920, 1080, 5_000_000] };

// capture asks the browser for what was chosen: source is camera, screen or none; camera and microphone are device IDs,
// empty for the standard ones, and microphone may be none; speech takes noise away.
export async function capture({ source, camera, microphone, speech, quality }) {
  if (!navigator.mediaDevices) {
    throw new Error('a page may use them over HTTPS only, or on localhost. Open this page with https://');
  }
  const [width, height] = QUALITY[quality];
  const size = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 } };
  const audio = microphone !== 'none' && {
    noiseSuppression: speech, echoCancellation: speech, autoGainControl: speech, ...chosen(microphone),
  };
  if (source === 'screen') return screen(size, audio);
  const video = source === 'camera' && { ...size, ...chosen(camera) };
  if (!video && !audio) throw new Error('choose a picture or a microphone');
  const media = await navigator.mediaDevices.getUserMedia({ video, audio });
  for (const track of media.getVideoTracks()) track.contentHint = 'motion';
  return media;
}

// screen is a screen with its own sound, or with the microphone's where it has none.
async function screen(size, audio) {
  const media = await navigator.mediaDevices.getDisplayMedia({ video: size, audio: true });
  for (const track of media.getVideoTracks()) track.contentHint = 'detail';
  if (audio && !media.getAudioTracks().length) {
    try {
      const voice = await navigator.mediaDevices.getUserMedia({ audio });
      for (const track of voice.getAudioTracks()) media.addTrack(track);
    } catch (e) {
      for (const track of media.getTracks()) track.stop();
      throw e;
    }
  }
  return media;
}

function chosen(device) {
  return device ? { deviceId: { exact: device } } : {};
}

// devices are the cameras or microphones as pairs of ID and name; names are known once something was allowed.
export async function devices(kind) {
  if (!navigator.mediaDevices) return [];
  const all = await navigator.mediaDevices.enumerateDevices();
  return all.filter((d) => d.kind === kind && d.deviceId && d.deviceId !== 'default')
    .map((d, i) => [d.deviceId, d.label || 'Device ' + (i + 1)]);
}

// explain says why there is no picture or sound, and what to do.
export function explain(e) {
  switch (e && e.name) {
    case 'NotAllowedError':
      return 'The browser was not allowed to use the camera, the microphone or the screen. ' +
        'Allow it beside the address and try again.';
    case 'NotFoundError': return 'There is no such camera or microphone on this machine.';
    case 'NotReadableError': return 'The camera or the microphone is used by another program.';
    case 'OverconstrainedError': return 'The camera that was chosen is not there any more.';
    default: return 'The camera, the microphone or the screen cannot be used: ' + (e && e.message ? e.message : e);
  }
}
