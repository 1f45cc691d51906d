# Two stages. The first checks every package against the hashes of the lock files, and installs the packages into a folder.
# The second has this folder and an interpreter, and does not run as root. It writes nothing: run it with a read-only root
# file system.
# PYTHON pins the base by its digest: docker build --build-arg PYTHON=python:3.13-slim@sha256:… . deploy/README.md says why
# it is the slim image and not a distroless one.
# For both architectures: docker buildx build --platform linux/amd64,linux/arm64 .
ARG PYTHON=python:3.13-slim
FROM ${PYTHON} AS build
WORKDIR /src
RUN python -m venv /opt/claimgate
ENV PATH=/opt/claimgate/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock requirements-build.lock ./
RUN pip install --no-deps --require-hashes -r requirements-build.lock && pip install --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY policies policies
COPY docs/rules docs/rules
COPY deploy/samples deploy/samples
COPY deploy/claimgate.1 deploy/claimgate.1
COPY certs certs
COPY webhook webhook
COPY claimgate claimgate
RUN pip install --no-deps --no-build-isolation --no-index . && pip uninstall --yes hatchling editables pip

FROM ${PYTHON}
ARG PYTHON
ARG VERSION=0.2.0
ARG REVISION=""
LABEL org.opencontainers.image.title="claimgate" \
      org.opencontainers.image.description="Admission webhook for AI and GPU workloads on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON}"
COPY --from=build /opt/claimgate /opt/claimgate
ENV PATH=/opt/claimgate/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8443 8081
ENTRYPOINT ["claimgate"]
CMD ["serve"]
