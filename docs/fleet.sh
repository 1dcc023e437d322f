#!/bin/bash
# A fleet on one machine, to try out or to copy from: PostgreSQL, an S3 server, two nodes, and nginx in front of them.
#
#   docs/fleet.sh [FOLDER]        all data is kept below FOLDER (./fleet); Ctrl-C ends all of it
#
# It needs millrace, PostgreSQL, nginx, openssl and curl of the distribution, and an S3 server:
#   go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
# MILLRACE, VERSITYGW and NGINX name other programs, PORT another first port (8400; 11 are used). TestDocsFleet runs it.
set -euo pipefail
umask 077
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
millrace="${MILLRACE:-millrace}" versitygw="${VERSITYGW:-versitygw}" nginx="${NGINX:-nginx}"
first="${PORT:-8400}"
http=("$((first + 1))" "$((first + 2))") rtmp=("$((first + 3))" "$((first + 4))") srt=("$((first + 5))" "$((first + 6))")
internal=("$((first + 7))" "$((first + 8))") postgres="$((first + 9))" s3="$((first + 10))"
mkdir -p "${1:-fleet}"
dir="$(cd "${1:-fleet}" && pwd)"

# Secrets are made once. All nodes have the same ones; a database in use has its password, and the master key its secrets.
secret() { [ -s "$dir/$1" ] || openssl rand -hex 24 >"$dir/$1"; cat "$dir/$1"; }
db_password="$(secret db-password)" s3_secret="$(secret s3-secret)" token_secret="$(secret token-secret)"
[ -s "$dir/master-key" ] || openssl rand -base64 32 >"$dir/master-key"

# What was started last ends first: nginx, then the nodes, which store what is still open, then what they store it in.
running=()
finish() {
  for ((i = ${#running[@]} - 1; i >= 0; i--)); do
    kill -"${signal[i]}" "${running[i]}" 2>/dev/null || continue
    wait "${running[i]}" 2>/dev/null || true
  done
}
signal=()
start() { # SIGNAL LOG COMMAND...
  "${@:3}" >>"$dir/$2.log" 2>&1 &
  running+=("$!") signal+=("$1")
}
trap finish EXIT
trap 'exit 0' INT TERM

# PostgreSQL does not run as root.
as=()
pg="$(dirname "$(command -v initdb || printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")"
mkdir -p "$dir/postgres"
if [ "$(id -u)" -eq 0 ]; then
  as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  chown postgres "$dir/postgres" "$dir/db-password"
  chmod 711 "$dir"
fi
[ -e "$dir/postgres/PG_VERSION" ] ||
  "${as[@]}" "$pg/initdb" --auth=scram-sha-256 --username=millrace --pwfile="$dir/db-password" --encoding=UTF8 \
    --locale=C.UTF-8 --pgdata="$dir/postgres" >"$dir/initdb.log"
start INT postgres "${as[@]}" "$pg/postgres" -D "$dir/postgres" -p "$postgres" -k "" -c listen_addresses=127.0.0.1

mkdir -p "$dir/s3"
start TERM s3 env ROOT_ACCESS_KEY=millrace ROOT_SECRET_KEY="$s3_secret" \
  "$versitygw" --quiet --port "127.0.0.1:$s3" posix "$dir/s3"

# The nodes. They differ in their data folders and addresses alone, which on machines of their own can be the same too.
export MILLRACE_DATABASE_URL="postgres://millrace:$db_password@127.0.0.1:$postgres/postgres?sslmode=disable"
export MILLRACE_STORAGE_URL="s3://millrace?endpoint=http://127.0.0.1:$s3&region=us-east-1&path_style=true&create=true"
export AWS_ACCESS_KEY_ID=millrace AWS_SECRET_ACCESS_KEY="$s3_secret"
export MILLRACE_MASTER_KEY_FILE="$dir/master-key" MILLRACE_TOKEN_ID=fleet MILLRACE_TOKEN_SECRET="$token_secret"
export MILLRACE_PUBLIC_URL="https://localhost:$first" MILLRACE_TRUSTED_PROXIES=127.0.0.1/32
export MILLRACE_WEBRTC_UDP_ADDR=off MILLRACE_WEBRTC_TCP_ADDR=off
for i in 0 1; do
  start TERM "node$((i + 1))" "$millrace" serve --data-dir "$dir/node$((i + 1))" --http-addr "127.0.0.1:${http[i]}" \
    --rtmp-addr "127.0.0.1:${rtmp[i]}" --srt-addr "127.0.0.1:${srt[i]}" \
    --rtmp-public-url "rtmp://127.0.0.1:${rtmp[i]}/app" --internal-addr "127.0.0.1:${internal[i]}"
done

# nginx, with docs/front/nginx.conf.
mkdir -p "$dir/nginx"
[ -s "$dir/nginx/key.pem" ] ||
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$dir/nginx/key.pem" -out "$dir/nginx/cert.pem" 2>/dev/null
{
  echo "daemon off; pid $dir/nginx/pid; error_log stderr; events { }"
  [ "$(id -u)" -ne 0 ] || echo "user root;"
  echo "http { access_log off;"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $dir/nginx/$kind;"; done
  sed -e "s|10.0.0.11:8080|127.0.0.1:${http[0]}|; s|10.0.0.12:8080|127.0.0.1:${http[1]}|" \
    -e "s|listen 443 |listen 127.0.0.1:$first |; s|/var/cache/nginx/millrace|$dir/nginx/cache|" \
    -e "s|/etc/ssl/video.example.org.pem|$dir/nginx/cert.pem|; s|/etc/ssl/video.example.org.key|$dir/nginx/key.pem|" \
    "$here/front/nginx.conf"
  echo "}"
} >"$dir/nginx/nginx.conf"
start TERM nginx "$nginx" -p "$dir/nginx" -e stderr -c "$dir/nginx/nginx.conf"

for port in "${http[@]}"; do
  curl -sf --retry 240 --retry-delay 1 --retry-all-errors -o "$dir/ready" "http://127.0.0.1:$port/readyz" 2>/dev/null ||
    { echo "a node does not get ready: see $dir/node1.log and node2.log" >&2; exit 1; }
done
echo "viewers and API: https://localhost:$first (certificate: $dir/nginx/cert.pem)"
echo "access token:    fleet, its secret is in $dir/token-secret"
echo "encoders:        rtmp://127.0.0.1:${rtmp[0]}/app or rtmp://127.0.0.1:${rtmp[1]}/app"
echo "ready"
wait -n "${running[@]}" || true
echo "one of them has ended: see the logs in $dir" >&2
exit 1
