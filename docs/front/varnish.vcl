vcl 4.1;

# Varnish 6 or later in front of a fleet of Millrace: it spreads requests over the nodes, merges equal ones, and caches
# what viewers share. TestFrontVarnish runs it with Varnish 7.1, started with
#
#   varnishd -a :6081 -f /etc/varnish/millrace.vcl -s malloc,4g -p feature=+http2
#
# Varnish does not end TLS: Hitch, HAProxy or nginx does in front of it. Let that one pass on who asks by the PROXY
# protocol (-a :6081,PROXY), and speak HTTP/2 to viewers.
import directors;

probe alive {
    .url = "/readyz/node";                     # not 200 either while the node leaves
    .interval = 2s;
    .timeout = 1s;
    .window = 3;
    .threshold = 2;
    .initial = 2;                              # until the first ones are done
}

# A blocking reload has its response within three target durations, and a target duration is 21 s at most: 63 s and some
# more. Sooner than that Varnish would say 503 to viewers whose encoder pauses.
backend node1 {
    .host = "10.0.0.11";
    .port = "8080";
    .connect_timeout = 2s;
    .first_byte_timeout = 75s;
    .between_bytes_timeout = 75s;
    .probe = alive;
}
backend node2 {
    .host = "10.0.0.12";
    .port = "8080";
    .connect_timeout = 2s;
    .first_byte_timeout = 75s;
    .between_bytes_timeout = 75s;
    .probe = alive;
}

sub vcl_init {
    new nodes = directors.round_robin();       # any node serves any request
    nodes.add_backend(node1);
    nodes.add_backend(node2);
}

sub vcl_recv {
    set req.backend_hint = nodes.backend();
    unset req.http.Forwarded;                  # the client's own word; Varnish adds whom it sees to X-Forwarded-For
    # What viewers share: playlists, segments, parts, texts and images of a playback ID. All else passes by the cache,
    # as it comes, both ways: API, dashboard and its events, uploads, WHIP, pages, downloads.
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url !~ "^/[0-9A-Za-z]+(/[^?]*)?\.(m3u8|m4s|vtt|jpg|png|webp|gif)(\?|$)" &&
        req.url !~ "^/[0-9A-Za-z]+/[^?]*/([0-9]+-)?init-[0-9]+\.mp4(\?|$)") {
        return (pass);
    }
    # The player's CMCD parameter differs for each viewer and request. All else stays: tokens, modifiers and _HLS_
    # directives say what the response is.
    set req.url = regsuball(req.url, "(?<=[?&])CMCD=[^&]*(&|$)", "");
    set req.url = regsub(req.url, "[?&]$", "");
    if (req.url ~ "[?&]token=") {
        return (pass);                         # for nobody else
    }
    unset req.http.Cookie;                     # playback never looks at one
    unset req.http.Authorization;
    return (hash);
}

sub vcl_backend_response {
    # Kept for as long as Cache-Control says and no longer: a live playlist that is past its second is of no use to a
    # player. Varnish by itself would give it for 10 seconds more.
    set beresp.grace = 0s;
    set beresp.keep = 0s;
    # Errors, and what is private, are never kept. For two seconds it is known that nobody has to wait for another's.
    if (beresp.status >= 400 || beresp.http.Cache-Control !~ "max-age" ||
        beresp.http.Cache-Control ~ "no-store|no-cache|private") {
        set beresp.uncacheable = true;
        set beresp.ttl = 2s;
        return (deliver);
    }
}

sub vcl_backend_error {
    if (bereq.retries == 0 && (bereq.method == "GET" || bereq.method == "HEAD")) {
        return (retry);                        # on the other node
    }
}
