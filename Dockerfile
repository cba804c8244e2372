# The engine's image. Every stage starts from one base, given by digest; nothing is fetched while building.
#
# Context (laid out by `python -m qualification.container image`): wheelhouse/, locks/, engine/, qualification/, schemas/, pins.json,
# model/, labels as build arguments. No shell is needed or expected in the base: every step is an exec-form call of its interpreter.
# Stages: `verify` installs, checks and compiles; `runtime` is what ships; `check` looks at `runtime` again and ships nothing.
ARG BASE
FROM ${BASE} AS verify
ARG BASE
ARG VARIANT=cpu
ARG SOURCE_DATE_EPOCH=0
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
COPY wheelhouse/ /build/wheelhouse/
COPY locks/ /build/locks/
COPY qualification/container/stage_install.py /build/stage_install.py
RUN ["/usr/bin/python3.11", "-I", "/build/stage_install.py"]
COPY schemas/ /build/source/schemas/
COPY qualification/ /build/source/qualification/
COPY pins.json /build/pins.json
COPY model/ /opt/assay/model/
WORKDIR /build/source
ENV PYTHONPATH=/build/tools
RUN ["/usr/bin/python3.11", "-m", "qualification.container.stage_model"]
COPY engine/ /opt/assay/lib/python3.11/site-packages/engine/
RUN ["/usr/bin/python3.11", "-m", "qualification.container.stage_finish"]

FROM ${BASE} AS runtime
ARG BASE_NAME
ARG BASE_DIGEST
ARG CREATED
ARG LICENCES
ARG MODEL_DIGEST
ARG MODEL_ID
ARG MODEL_REVISION
ARG MODEL_WEIGHTS
ARG REVISION
ARG SOURCE
ARG TIER
ARG VARIANT=cpu
ARG VERSION
COPY --from=verify /opt/assay/lib/ /opt/assay/lib/
COPY --from=verify /opt/assay/pycache/ /opt/assay/pycache/
COPY --from=verify /opt/assay/share/ /opt/assay/share/
COPY --from=verify /opt/assay/bin/ /opt/assay/bin/
COPY --from=verify /opt/assay/pyvenv.cfg /opt/assay/pyvenv.cfg
COPY --from=verify /opt/assay/model/ /opt/assay/model/
ENV PATH=/opt/assay/bin HOME=/nonexistent LANG=C.UTF-8 \
    ASSAY_HOST=0.0.0.0 ASSAY_PORT=8000 ASSAY_MODEL=/opt/assay/model ASSAY_MODEL_NAME=${MODEL_ID}
LABEL org.opencontainers.image.source=${SOURCE} \
      org.opencontainers.image.revision=${REVISION} \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.created=${CREATED} \
      org.opencontainers.image.licenses=${LICENCES} \
      org.opencontainers.image.base.name=${BASE_NAME} \
      org.opencontainers.image.base.digest=${BASE_DIGEST} \
      org.opencontainers.image.title="Assay voice-design engine" \
      assay.model.id=${MODEL_ID} \
      assay.model.revision=${MODEL_REVISION} \
      assay.model.digest=${MODEL_DIGEST} \
      assay.model.weights=${MODEL_WEIGHTS} \
      assay.tier=${TIER} \
      assay.variant=${VARIANT}
USER 10001:10001
WORKDIR /
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["/opt/assay/bin/python", "-I", "-S", "/opt/assay/share/healthcheck.py"]
ENTRYPOINT ["/opt/assay/bin/python", "-I", "-X", "pycache_prefix=/opt/assay/pycache", "-m", "engine"]
CMD ["serve"]

FROM runtime AS check
USER 0:0
COPY --from=verify /build/tools/ /build/tools/
COPY --from=verify /build/source/ /build/source/
COPY --from=verify /build/pins.json /build/pins.json
WORKDIR /build/source
ENV PYTHONPATH=/build/tools PYTHONDONTWRITEBYTECODE=1
RUN ["/usr/bin/python3.11", "-m", "qualification.container.stage_check"]
