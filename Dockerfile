# The container image: docker build --tag millrace . (docs/docker.md)
# tools/image makes the last stage without Docker, and reads its instructions from here.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETARCH
WORKDIR /src
COPY deploy/image/root.sh .
RUN ./root.sh "$TARGETARCH" /debian
COPY . .
RUN go -C tools/release run . -root /src -out /dist -arch "$TARGETARCH" && \
    mkdir -p /millrace /data/millrace && tar -xzf /dist/*.tar.gz -C /millrace --strip-components=1

FROM scratch
COPY --from=build /debian /
COPY --from=build --chown=10001:10001 /data /var/lib
COPY --from=build /millrace/millrace /millrace/millrace-speech /usr/bin/
COPY --from=build /millrace/LICENSE /millrace/LICENCES /millrace/CHANGELOG.md /usr/share/doc/millrace/
ENV PATH=/usr/bin MILLRACE_DATA_DIR=/var/lib/millrace
USER 10001:10001
VOLUME /var/lib/millrace
EXPOSE 8080 8443 1935 1936 6001/udp 8189 8189/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=1m CMD ["millrace", "health"]
LABEL org.opencontainers.image.title=Millrace \
      org.opencontainers.image.description="Self-hosted live and on-demand video service" \
      org.opencontainers.image.licenses=Apache-2.0
ENTRYPOINT ["millrace"]
CMD ["serve"]
