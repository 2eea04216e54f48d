#!/usr/bin/env bash
# Push the packed charts and sign each by the digest that the registry gave it: `charts.sh FOLDER oci://REGISTRY/PATH`.
set -euo pipefail
for archive in "$1"/*.tgz; do
  said=$(helm push "$archive" "$2" 2>&1)
  echo "$said"
  name=$(basename "$archive" | sed -E 's/-[0-9]+\.[0-9]+\.[0-9]+.*$//')
  digest=$(sed -n 's/^Digest: //p' <<<"$said")
  test -n "$digest" || { echo "charts.sh: $archive: helm named no digest" >&2; exit 1; }
  cosign sign --yes "${2#oci://}/$name@$digest"
done
