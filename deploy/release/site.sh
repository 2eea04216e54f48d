#!/usr/bin/env bash
# Put the built site beside those of other versions, on the branch that GitHub Pages serves: `site.sh VERSION`.
set -euo pipefail
cd "$(dirname "$0")/../.."
branch=gh-pages
served=dist/served
if git fetch origin "$branch"; then
  git worktree add "$served" -B "$branch" "origin/$branch"
else
  git worktree add --orphan -b "$branch" "$served"
fi
python3 -m deploy.release.site .dovetail/site "$served" "$1"
touch "$served/.nojekyll"
git -C "$served" add --all
git -C "$served" -c user.name=release -c user.email=release@localhost commit --quiet --message "The documentation of $1"
git -C "$served" push origin "$branch"
