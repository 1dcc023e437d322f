package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestLiveStreams(t *testing.T) {
	t.Parallel()
	const base = "/video/v1/live-streams"
	runScenarios(t, "live_streams.txt", []scenario{
		{name: "create with nothing", method: "POST", path: base, body: `{}`, status: 201},
		{name: "create without a body", method: "POST", path: base, status: 201},
		{
			name: "create with nulls, which mean absent", method: "POST", path: base, status: 201,
			body: `{"passthrough":null,"playback_policies":null,"meta":null,"new_asset_settings":{"inputs":null}}`,
		},
		{
			name: "create with one policy as a string", method: "POST", path: base,
			body: `{"playback_policy":"public","new_asset_settings":{"playback_policy":"signed"}}`, status: 201,
		},
		{
			name: "create with policies as arrays", method: "POST", path: base,
			body:   `{"playback_policies":["public","signed"],"new_asset_settings":{"playback_policies":["public"]}}`,
			status: 201,
		},
		{
			name: "create with both names that agree", method: "POST", path: base,
			body: `{"playback_policies":["public"],"playback_policy":"public"}`, status: 201,
		},
		{
			name: "create with both names that differ", method: "POST", path: base, status: 400,
			body: `{"playback_policies":["public"],"playback_policy":"signed","new_asset_settings":{"input":"https://a/","inputs":"https://b/"}}`,
		},
		{name: "create with everything", method: "POST", path: base, status: 201, body: `{
			"playback_policies":["public"],"advanced_playback_policies":[{"policy":"drm","drm_configuration_id":"d1"}],
			"new_asset_settings":{"advanced_playback_policies":[{"policy":"drm"}],"inputs":[{"name":"main"},{"url":"https://example.com/l.png","overlay_settings":
			{"vertical_align":"top","vertical_margin":"1%","horizontal_align":"left","horizontal_margin":"2px","width":"10%","height":"20px","opacity":"50%"}}],
			"passthrough":"ap","meta":{"title":"t","creator_id":"c","external_id":"e"},"mp4_support":"none","static_renditions":[{"resolution":"highest","passthrough":"x"}],
			"video_quality":"plus","encoding_tier":"smart","max_resolution_tier":"1080p","master_access":"none","normalize_audio":true,"copy_overlays":false,"generate_shots":true,"test":true},
			"reconnect_window":0.5,"use_slate_for_standard_latency":true,"reconnect_slate_url":"https://example.com/s.png","passthrough":"p","audio_only":true,
			"embedded_subtitles":[{"name":"n","language_code":"en","language_channel":"cc1","passthrough":"q"}],
			"generated_subtitles":[{"name":"n","language_code":"en","passthrough":"q","transcription_vocabulary_ids":["v"]}],
			"latency_mode":"low","low_latency":true,"reduced_latency":false,"test":true,"simulcast_targets":[{"url":"rtmp://a/b","stream_key":"k","passthrough":"q"}],
			"max_continuous_duration":600.0,"meta":{"title":"t"}}`},
		{
			name: "create as a client that can't leave objects out", method: "POST", path: base, status: 201,
			body: `{"new_asset_settings":{"input":[{"name":"main","overlay_settings":{}},{"url":"https://example.com/l.png","overlay_settings":{"width":"10%"}}],"meta":{}}}`,
		},
		{
			name: "create with fields that nobody knows", method: "POST", path: base,
			body: `{"player":true,"new_asset_settings":{"robots":[{"x":1}],"evil \"name\"\n":0}}`, status: 201,
		},
		{
			name: "create with fields that were meant to be others", method: "POST", path: base, status: 201,
			body: `{"playback_polices":["public"],"newAssetSettings":{},"new_asset_settings":{"Passthruogh":"x","inputs":[{"overlay_settings":{"widht":"1%"}}]},"a\"b":1}`,
		},
		{
			name: "create with fields that ask for nothing", method: "POST", path: base, status: 201,
			body: `{"embedded_subtitles":[],"generated_subtitles":null,"new_asset_settings":{"generate_shots":false,"inputs":[{"generated_subtitles":[]}]}}`,
		},
		{
			name: "create with every type wrong", method: "POST", path: base, status: 400,
			body: `{"playback_policies":7,"playback_policy":[1,"public",null],"new_asset_settings":"x",
			"reconnect_window":"60","passthrough":{"a":1},"audio_only":"true","embedded_subtitles":{"name":"n"},"latency_mode":false,"max_continuous_duration":1.5,
			"meta":[],"simulcast_targets":["rtmp://a/b"],"generated_subtitles":true,"test":1}`,
		},
		{
			name: "create with numbers out of range", method: "POST", path: base,
			body: `{"reconnect_window":1e400,"max_continuous_duration":99999999999999999999}`, status: 400,
		},
		{name: "names are case-sensitive", method: "POST", path: base, body: `{"Passthrough":7}`, status: 201},
		{name: "a rule is broken", method: "POST", path: base, body: `{"passthrough":"many"}`, status: 400},
		{name: "the service breaks", method: "POST", path: base, body: `{"passthrough":"broken"}`, status: 500},
		{name: "get", method: "GET", path: base + "/live1", status: 200},
		{name: "get a plain one", method: "GET", path: base + "/plain", status: 200},
		{name: "get an unknown one", method: "GET", path: base + "/absent", status: 404},
		{name: "get an unknown one, nothing said", method: "GET", path: base + "/bare", status: 404},
		{name: "get with an ID that can not be", method: "GET", path: base + "/a%20b", status: 400},
		{name: "get with U+0000 in the ID", method: "GET", path: base + "/a%00b", status: 400},
		{name: "get with an ID too long", method: "GET", path: base + "/" + strings.Repeat("a", 256), status: 400},
		{name: "get while the database is away", method: "GET", path: base + "/away", status: 503},
		{name: "head", method: "HEAD", path: base + "/plain", status: 200},
		{name: "list", method: "GET", path: base, status: 200},
		{
			name: "list with everything", method: "GET",
			path: base + "?page=2&limit=100&status=active&stream_key=key1&unknown=1", status: 200,
		},
		{
			name: "list with mistyped parameters", method: "GET", path: base + "?limits=2&Page=1&stream-key=k%22%0d%0a",
			status: 200,
		},
		{name: "list with a mistyped parameter, refused", method: "GET", path: base + "?limits=2&page=0", status: 400},
		{
			name: "patch with a mistyped parameter and field", method: "PATCH", path: base + "/live1?polcy=1",
			body: `{"passthru":"p"}`, status: 200,
		},
		{
			name: "patch with a mistyped field, refused", method: "PATCH", path: base + "/many",
			body: `{"passthru":"p"}`, status: 400,
		},
		{name: "list with wrong numbers", method: "GET", path: base + "?page=0&limit=101", status: 400},
		{name: "list with no numbers", method: "GET", path: base + "?page=one&limit=1e1", status: 400},
		{name: "list with an unknown status", method: "GET", path: base + "?status=connected", status: 400},
		{name: "list with U+0000", method: "GET", path: base + "?stream_key=a%00", status: 400},
		{name: "list with broken escapes", method: "GET", path: base + "?stream_key=%zz", status: 400},
		{name: "list with invalid UTF-8", method: "GET", path: base + "?stream_key=%ff", status: 400},
		{
			name: "patch everything", method: "PATCH", path: base + "/live1", status: 200,
			body: `{"latency_mode":"low","reconnect_window":0,"use_slate_for_standard_latency":false,"reconnect_slate_url":"","passthrough":"p","max_continuous_duration":60,
			"meta":{"title":"t"},"new_asset_settings":{"master_access":"none","mp4_support":"none","video_quality":"plus","meta":{"title":"u"}}}`,
		},
		{name: "patch with nothing", method: "PATCH", path: base + "/live1", body: `{}`, status: 200},
		{
			name: "patch with nulls that clear", method: "PATCH", path: base + "/live1",
			body:   `{"reconnect_slate_url":null,"passthrough":null,"meta":null,"new_asset_settings":{"meta":null}}`,
			status: 200,
		},
		{
			name: "patch with nulls that clear members", method: "PATCH", path: base + "/live1",
			body: `{"meta":{"title":null},"new_asset_settings":{"meta":{"title":null,"external_id":"e"}}}`, status: 200,
		},
		{
			name: "patch with empty objects, which change nothing", method: "PATCH", path: base + "/live1",
			body: `{"meta":{},"new_asset_settings":{}}`, status: 200,
		},
		{
			name: "patch with empty objects in objects", method: "PATCH", path: base + "/live1",
			body: `{"passthrough":"p","new_asset_settings":{"meta":{}}}`, status: 200,
		},
		{
			name: "patch with null for an object of objects", method: "PATCH", path: base + "/live1",
			body: `{"new_asset_settings":null}`, status: 200,
		},
		{
			name: "patch with nulls for defaults", method: "PATCH", path: base + "/live1", status: 200,
			body: `{"latency_mode":null,"reconnect_window":null,"max_continuous_duration":null}`,
		},
		{
			name: "patch with nulls that can not clear", method: "PATCH", path: base + "/live1",
			body: `{"use_slate_for_standard_latency":null}`, status: 400,
		},
		{
			name: "patch what is fixed", method: "PATCH", path: base + "/live1",
			body:   `{"test":true,"playback_policies":["public"],"new_asset_settings":{"passthrough":"x"},"other":1}`,
			status: 400,
		},
		{
			name: "patch in the wrong state", method: "PATCH", path: base + "/busy", body: `{"latency_mode":"low"}`,
			status: 400,
		},
		{name: "delete", method: "DELETE", path: base + "/live1", status: 204},
		{name: "delete an unknown one", method: "DELETE", path: base + "/absent", status: 404},
		{name: "enable", method: "PUT", path: base + "/live1/enable", status: 200},
		{
			name: "disable with a body, which is not read", method: "PUT", path: base + "/live1/disable",
			body: `not JSON`, status: 200,
		},
		{name: "complete", method: "PUT", path: base + "/live1/complete", status: 200},
		{name: "complete an unknown one", method: "PUT", path: base + "/absent/complete", status: 404},
		{name: "reset the stream key", method: "POST", path: base + "/live1/reset-stream-key", status: 201},
		{
			name: "add a playback ID", method: "POST", path: base + "/live1/playback-ids",
			body: `{"policy":"drm","drm_configuration_id":"d1"}`, status: 201,
		},
		{name: "get a playback ID", method: "GET", path: base + "/live1/playback-ids/pb1", status: 200},
		{name: "delete a playback ID", method: "DELETE", path: base + "/live1/playback-ids/pb1", status: 204},
		{
			name: "add a simulcast target", method: "POST", path: base + "/live1/simulcast-targets",
			body: `{"url":"rtmp://example.com/app","stream_key":"k","passthrough":"p"}`, status: 201,
		},
		{
			name: "add a simulcast target with wrong types", method: "POST", path: base + "/live1/simulcast-targets",
			body: `{"url":1,"stream_key":["k"],"passthrough":{}}`, status: 400,
		},
		{
			name: "add a simulcast target while active", method: "POST", path: base + "/busy/simulcast-targets",
			body: `{"url":"rtmp://example.com/app"}`, status: 400,
		},
		{name: "health", method: "GET", path: base + "/live1/health", status: 200},
		{name: "health of one that was never live", method: "GET", path: base + "/plain/health", status: 200},
		{name: "health of an unknown one", method: "GET", path: base + "/absent/health", status: 404},
		{
			name: "set static renditions", method: "PUT", path: base + "/live1/new-asset-settings/static-renditions",
			status: 200,
			body:   `{"static_renditions":[{"resolution":"highest"},{"resolution":"audio-only","passthrough":"p"}]}`,
		},
		{
			name: "set static renditions of the wrong type", method: "PUT",
			path: base + "/live1/new-asset-settings/static-renditions", body: `{"static_renditions":{}}`, status: 400,
		},
		{
			name: "set embedded subtitles", method: "PUT", path: base + "/live1/embedded-subtitles",
			body: `{"embedded_subtitles":[{"language_channel":"cc3","passthrough":"p"}]}`, status: 200,
		},
		{
			name: "clear embedded subtitles", method: "PUT", path: base + "/live1/embedded-subtitles",
			body: `{"embedded_subtitles":[]}`, status: 200,
		},
		{
			name: "set embedded subtitles of the wrong type", method: "PUT", path: base + "/live1/embedded-subtitles",
			body: `{"embedded_subtitles":"en"}`, status: 400,
		},
		{
			name: "clear embedded subtitles as a client that leaves empty lists out", method: "PUT",
			path: base + "/live1/embedded-subtitles", body: `{}`, status: 200,
		},
		{
			name: "set generated subtitles", method: "PUT", path: base + "/live1/generated-subtitles", status: 200,
			body: `{"generated_subtitles":[{"language_code":"en","name":"n","passthrough":"p","transcription_vocabulary_ids":["v"]}]}`,
		},
		{
			name: "clear generated subtitles", method: "PUT", path: base + "/live1/generated-subtitles",
			body: `{"generated_subtitles":[]}`, status: 200,
		},
		{
			name: "clear generated subtitles by null", method: "PUT", path: base + "/live1/generated-subtitles",
			body: `{"generated_subtitles":null}`, status: 200,
		},
		{
			name: "clear generated subtitles as a client that leaves empty lists out", method: "PUT",
			path: base + "/live1/generated-subtitles", body: `{}`, status: 200,
		},
		{
			name: "set generated subtitles of the wrong type", method: "PUT", path: base + "/live1/generated-subtitles",
			body: `{"generated_subtitles":"en"}`, status: 400,
		},
		{
			name: "set generated subtitles while active", method: "PUT", path: base + "/busy/generated-subtitles",
			body: `{"generated_subtitles":[{}]}`, status: 400,
		},
		{
			name: "set generated subtitles of an unknown one", method: "PUT",
			path: base + "/absent/generated-subtitles", body: `{"generated_subtitles":[{}]}`, status: 404,
		},
		{
			name: "delete static renditions", method: "DELETE",
			path: base + "/live1/new-asset-settings/static-renditions", status: 204,
		},
		{name: "get a simulcast target", method: "GET", path: base + "/live1/simulcast-targets/sim1", status: 200},
		{
			name: "get an unknown simulcast target", method: "GET", path: base + "/live1/simulcast-targets/absent",
			status: 404,
		},
		{name: "simulcast targets have no list", method: "GET", path: base + "/live1/simulcast-targets", status: 405},
		{
			name: "delete a simulcast target", method: "DELETE", path: base + "/live1/simulcast-targets/sim1",
			status: 204,
		},
	})
}

func TestAssets(t *testing.T) {
	t.Parallel()
	const base = "/video/v1/assets"
	runScenarios(t, "assets.txt", []scenario{
		{
			name: "create from a URL", method: "POST", path: base,
			body: `{"input":"https://example.com/a.mp4","playback_policy":"public"}`, status: 201,
		},
		{
			name: "create from an object", method: "POST", path: base,
			body: `{"inputs":{"url":"https://example.com/a.mp4"},"playback_policies":"public"}`, status: 201,
		},
		{
			name: "create with an overlay of defaults", method: "POST", path: base, status: 201,
			body: `{"inputs":[{"url":"https://example.com/a.mp4"},{"url":"https://example.com/l.png","overlay_settings":{}}]}`,
		},
		{
			name: "create as a client that can't leave objects out", method: "POST", path: base, status: 201,
			body: `{"input":[{"url":"https://example.com/a.mp4","overlay_settings":{}},{"url":"https://example.com/a.srt","overlay_settings":{},"type":"text"}],"meta":{}}`,
		},
		{
			name: "create from a mixed array", method: "POST", path: base, status: 201,
			body: `{"inputs":["https://example.com/a.mp4",{"url":"https://example.com/a.srt","type":"text","text_type":"subtitles","language_code":"en","name":"English","closed_captions":true,"passthrough":"p"}]}`,
		},
		{
			name: "create a clip", method: "POST", path: base, status: 201,
			body: `{"input":[{"url":"mux://assets/a1","start_time":0,"end_time":2.5,"generated_subtitles":{"language_code":"en","name":"E"}}],"video_quality":"basic"}`,
		},
		{
			name: "create with wrong types", method: "POST", path: base,
			body: `{"inputs":[7,{"url":7,"start_time":"0","overlay_settings":{"width":10}},[]],"static_renditions":[{"resolution":1}]}`, status: 400,
		},
		{name: "get", method: "GET", path: base + "/asset9", status: 200},
		{name: "get one that is preparing", method: "GET", path: base + "/preparing", status: 200},
		{name: "get an unknown one", method: "GET", path: base + "/absent", status: 404},
		{name: "list", method: "GET", path: base + "?live_stream_id=live1&upload_id=up1", status: 200},
		{name: "list by cursor, at the end", method: "GET", path: base + "?cursor=next1&limit=1", status: 200},
		{
			name: "patch", method: "PATCH", path: base + "/asset1",
			body: `{"passthrough":"","meta":{"title":"t","creator_id":"c","external_id":"e"}}`, status: 200,
		},
		{
			name: "patch with an empty object, which changes nothing", method: "PATCH", path: base + "/asset1",
			body: `{"passthrough":"p","meta":{}}`, status: 200,
		},
		{
			name: "patch with null for an object", method: "PATCH", path: base + "/asset1", body: `{"meta":null}`,
			status: 200,
		},
		{
			name: "patch what is fixed", method: "PATCH", path: base + "/asset1",
			body: `{"inputs":[],"generate_shots":true}`, status: 400,
		},
		{
			name: "patch with nulls that clear", method: "PATCH", path: base + "/asset1",
			body: `{"passthrough":null,"meta":{"title":null,"creator_id":"c"},"thumbnail_time":null}`, status: 200,
		},
		{
			name: "patch the thumbnail time", method: "PATCH", path: base + "/asset1", body: `{"thumbnail_time":0}`,
			status: 200,
		},
		{
			name: "patch with wrong types", method: "PATCH", path: base + "/asset1",
			body: `{"thumbnail_time":"1","meta":{"title":1}}`, status: 400,
		},
		{name: "clear the thumbnail time", method: "DELETE", path: base + "/asset1/thumbnail-time", status: 204},
		{
			name: "create with shots", method: "POST", path: base,
			body: `{"input":"https://example.com/a.mp4","generate_shots":true}`, status: 201,
		},
		{
			name: "create with shots of the wrong type", method: "POST", path: base,
			body: `{"input":"https://example.com/a.mp4","generate_shots":"yes"}`, status: 400,
		},
		{name: "delete", method: "DELETE", path: base + "/asset1", status: 204},
		{name: "input info", method: "GET", path: base + "/asset9/input-info", status: 200},
		{name: "input info of one that is preparing", method: "GET", path: base + "/preparing/input-info", status: 200},
		{name: "input info of an unknown one", method: "GET", path: base + "/absent/input-info", status: 404},
		{
			name: "add a playback ID", method: "POST", path: base + "/asset1/playback-ids", body: `{"policy":"signed"}`,
			status: 201,
		},
		{name: "get a playback ID", method: "GET", path: base + "/asset1/playback-ids/pb1", status: 200},
		{name: "delete a playback ID", method: "DELETE", path: base + "/asset1/playback-ids/pb1", status: 204},
		{
			name: "add a text track", method: "POST", path: base + "/asset1/tracks", status: 201,
			body: `{"url":"https://example.com/a.srt","type":"text","text_type":"subtitles","language_code":"en-US","name":"English","closed_captions":true,"passthrough":"p"}`,
		},
		{
			name: "add a track with wrong types", method: "POST", path: base + "/asset1/tracks",
			body: `{"url":1,"closed_captions":"yes"}`, status: 400,
		},
		{
			name: "patch a track", method: "PATCH", path: base + "/asset1/tracks/t3",
			body: `{"language_code":"de","name":"","closed_captions":false,"passthrough":null}`, status: 200,
		},
		{
			name: "patch what is fixed of a track", method: "PATCH", path: base + "/asset1/tracks/t3",
			body: `{"url":"https://example.com/b.srt"}`, status: 400,
		},
		{name: "delete a track", method: "DELETE", path: base + "/asset1/tracks/t3", status: 204},
		{
			name: "add a static rendition", method: "POST", path: base + "/asset1/static-renditions",
			body: `{"resolution":"720p","passthrough":"p"}`, status: 201,
		},
		{
			name: "add a static rendition of the wrong type", method: "POST", path: base + "/asset1/static-renditions",
			body: `{"resolution":720}`, status: 400,
		},
		{
			name: "add a static rendition to an unknown one", method: "POST", path: base + "/absent/static-renditions",
			body: `{"resolution":"highest"}`, status: 404,
		},
		{name: "delete a static rendition", method: "DELETE", path: base + "/asset1/static-renditions/f3", status: 204},
		{
			name: "delete an unknown static rendition", method: "DELETE",
			path: base + "/asset1/static-renditions/absent", status: 404,
		},
		{name: "static renditions have no list", method: "GET", path: base + "/asset1/static-renditions", status: 405},
		{
			name: "set mp4_support", method: "PUT", path: base + "/asset1/mp4-support",
			body: `{"mp4_support":"capped-1080p"}`, status: 200,
		},
		{
			name: "set mp4_support of the wrong type", method: "PUT", path: base + "/asset1/mp4-support",
			body: `{"mp4_support":true}`, status: 400,
		},
		{
			name: "set master_access", method: "PUT", path: base + "/asset1/master-access",
			body: `{"master_access":"temporary"}`, status: 200,
		},
		{
			name: "set master_access of an unknown one", method: "PUT", path: base + "/absent/master-access",
			body: `{"master_access":"temporary"}`, status: 404,
		},
		{name: "delete the main audio track", method: "DELETE", path: base + "/asset1/tracks/denied", status: 403},
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	const live, anyone = "/video/v1/live-streams", "/system/v1/whoami"
	nobody := func(*http.Request) {}
	reader := func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }
	wrong := func(user, secret string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, secret) }
	}
	runScenarios(t, "requests.txt", []scenario{
		{name: "whoami", method: "GET", path: anyone, status: 200},
		{name: "whoami, any token", method: "GET", path: anyone, auth: reader, status: 200},
		{name: "no credentials", method: "GET", path: live, auth: nobody, status: 401},
		{name: "wrong secret", method: "GET", path: live, auth: wrong(tokenID, "x"), status: 401},
		{name: "no secret", method: "GET", path: live, auth: wrong(tokenID, ""), status: 401},
		{name: "unknown token", method: "GET", path: live, auth: wrong("x", tokenValue), status: 401},
		{name: "token with U+0000", method: "GET", path: live, auth: wrong("a\x00", tokenValue), status: 401},
		{
			name: "secret too long", method: "GET", path: live, auth: wrong(tokenID, strings.Repeat("x", 2000)),
			status: 401,
		},
		{
			name: "bearer", method: "GET", path: live,
			auth: func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, status: 401,
		},
		{name: "credentials come before the body", method: "POST", path: live, auth: nobody, body: `{`, status: 401},
		{name: "reader reads", method: "GET", path: live, auth: reader, status: 200},
		{name: "reader writes", method: "POST", path: live, auth: reader, body: `{}`, status: 403},
		{name: "reader deletes", method: "DELETE", path: live + "/live1", auth: reader, status: 403},
		{name: "look up a playback ID", method: "GET", path: "/video/v1/playback-ids/pb1", status: 200},
		{name: "look up an unknown playback ID", method: "GET", path: "/video/v1/playback-ids/absent", status: 404},
		{name: "unknown route", method: "GET", path: "/video/v1/nothing", status: 404},
		{
			name: "unknown route without credentials", method: "POST", path: "/video/v2/assets", auth: nobody,
			status: 404,
		},
		{name: "slash at the end", method: "GET", path: live + "/", status: 404},
		{name: "root", method: "GET", path: "/", auth: nobody, status: 404},
		{name: "wrong method", method: "PUT", path: live, status: 405},
		{name: "wrong method of one", method: "POST", path: live + "/live1", auth: nobody, status: 405},
		{
			name: "options", method: "OPTIONS", path: live, auth: nobody,
			header: map[string]string{"Origin": "https://evil.example"}, status: 204,
		},
		{name: "options of an unknown route", method: "OPTIONS", path: "/x", auth: nobody, status: 404},
		{name: "invented method", method: "BREW", path: live, status: 405},
		{
			name: "JSON with a charset", method: "POST", path: live, body: `{}`,
			header: map[string]string{"Content-Type": "Application/JSON; charset=UTF-8"}, status: 201,
		},
		{
			name: "another charset", method: "POST", path: live, body: `{}`,
			header: map[string]string{"Content-Type": "application/json; charset=latin1"}, status: 400,
		},
		{
			name: "a form", method: "POST", path: live, body: `a=b`,
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 400,
		},
		{
			name: "no media type", method: "POST", path: live, body: `{}`,
			header: map[string]string{"Content-Type": ";;;"}, status: 400,
		},
		{
			name: "compressed", method: "POST", path: live, body: `{}`,
			header: map[string]string{"Content-Encoding": "gzip"}, status: 400,
		},
		{name: "not JSON", method: "POST", path: live, body: `{"passthrough":`, status: 400},
		{name: "something after the JSON", method: "POST", path: live, body: `{} {}`, status: 400},
		{name: "a comma too much", method: "POST", path: live, body: `{"test":true,}`, status: 400},
		{name: "an array", method: "POST", path: live, body: `[]`, status: 400},
		{name: "null", method: "POST", path: live, body: `null`, status: 400},
		{
			name: "a field twice", method: "POST", path: live,
			body: `{"test":true,"meta":{"title":"a","title":"b"},"test":true}`, status: 400,
		},
		{
			name: "U+0000", method: "POST", path: live, body: `{"passthrough":"a\u0000","x":{"y\u0000":["\u0000"]}}`,
			status: 400,
		},
		{name: "U+0000 in the raw", method: "POST", path: live, body: "{\"passthrough\":\"\x00\"}", status: 400},
		{name: "invalid UTF-8", method: "POST", path: live, body: "{\"passthrough\":\"\xff\"}", status: 400},
		{name: "an unpaired surrogate", method: "POST", path: live, body: `{"passthrough":"\ud83d x"}`, status: 400},
		{
			name: "a surrogate pair", method: "POST", path: live, body: `{"passthrough":"\\ud83d \ud83d\ude00"}`,
			status: 201,
		},
		{
			name: "too deep", method: "POST", path: live,
			body: strings.Repeat(`{"meta":`, 17) + "1" + strings.Repeat("}", 17), status: 400,
		},
		{name: "a BOM", method: "POST", path: live, body: "\ufeff{}", status: 400},
		{
			name: "more problems than are told", method: "POST", path: live,
			body: `{"playback_policies":[` + strings.Repeat("1,", 30) + `1]}`, status: 400,
		},
		{
			name: "as large as is allowed", method: "POST", path: live,
			body: `{"x":"` + strings.Repeat("a", 256<<10-8) + `"}`, status: 201,
		},
		{
			name: "one byte larger", method: "POST", path: live, body: `{"x":"` + strings.Repeat("a", 256<<10-7) + `"}`,
			status: 413,
		},
		{name: "a panic", method: "GET", path: live + "/panic", status: 500},
	})
}
