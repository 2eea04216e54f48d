#!/usr/bin/env bash
# The image by a container runtime: `compare` with the script's tree, `push REFERENCE`, `bill REFERENCE FILE`.
set -euo pipefail
cd "$(dirname "$0")/../.."
builder=${BUILDER:-docker.io/library/debian:12}
build() { docker buildx build --build-arg BUILDER="$builder" --file deploy/image/Containerfile "$@" .; }
case $1 in
compare)
  build --tag dovetail:compared --load >&2
  .venv/bin/python -m deploy.image.build tree dist/tree
  container=$(docker create dovetail:compared)
  docker export "$container" --output dist/image.tar
  docker rm "$container" >&2
  .venv/bin/python -m deploy.release.trees dist/tree/root dist/image.tar
  ;;
push)
  mkdir -p dist
  build --platform linux/amd64,linux/arm64 --tag "$2" --push --metadata-file dist/pushed.json >&2
  python3 -c 'import json; print("digest=" + json.load(open("dist/pushed.json"))["containerimage.digest"])'
  ;;
bill)
  container=$(docker create "$2")
  docker cp "$container:/usr/share/dovetail/sbom.cdx.json" "$3"
  docker rm "$container"
  ;;
*)
  echo "image.sh: compare, push or bill" >&2
  exit 2
  ;;
esac
