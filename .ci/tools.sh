# shellcheck shell=bash
# Functions that install the tools of the checks. Later runs use the same tools.

# The folder of the tools, outside of the project's target folder.
tools="${XDG_CACHE_HOME:-$HOME/.cache}/dueday-ci"
export PATH="$tools/python/bin:$PATH" SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=eu-west-1

# Creates the Python environment "$1" with the packages that the files "${@:2}" list with their hashes (.ci/pin). The lists contain every
# package, so pip does not resolve dependencies. Only localstripe has no wheel.
python_environment() {
    local folder="$tools/$1" lists=("${@:2}")
    cat "${lists[@]}" | cmp --silent - "$folder/installed.txt" && return
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --no-binary localstripe \
        "${lists[@]/#/--requirement=}"
    "$folder/bin/pip" check
    cat "${lists[@]}" > "$folder/installed.txt"
}

# Installs the npm packages "${@:2}" in the folder "$1".
npm_packages() {
    local folder="$tools/$1" packages=("${@:2}")
    [ "$(cat "$folder/installed.txt" 2>/dev/null)" = "${packages[*]}" ] && return
    rm -rf "$folder"
    npm install --silent --no-fund --no-audit --prefix "$folder" "${packages[@]}"
    printf '%s\n' "${packages[*]}" > "$folder/installed.txt"
}

# Installs the Debian package "$1", if the file "$2" does not exist.
apt_package() {
    [ -e "$2" ] && return
    local as_root
    as_root=$([ "$(id -u)" = 0 ] || echo sudo)
    $as_root apt-get update -qq
    $as_root apt-get install -qq --yes --no-install-recommends "$1"
}
