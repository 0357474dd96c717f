package docker

import (
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// installer is a program that installs the dependencies of a lock file. It checks the hashes of all packages, and runs
// no code of the packages.
type installer struct {
	registry string   // name in DOCKER_PACKAGE_HOSTS
	files    []string // the lock file, and the manifest in its folder
	variable string   // environment variable that sets the registry
	script   string   // shell script that installs into out
	env      []string // environment of containers that have the dependencies
	use      string   // a hint for the model
}

// The directories of a container that installs. One contains the lock file; the dependencies are installed in the
// other. Both are in memory, which limits the size of the dependencies.
const (
	source = container.Work + "/source"
	out    = container.Work + "/out"
	deps   = container.Dependencies
)

// installers maps the names of lock files to their installers.
var installers = map[string]installer{
	"go.sum": {registry: "go", files: []string{"go.sum", "go.mod"}, variable: "GOPROXY",
		script: "GOMODCACHE=" + out + "/go GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local go mod download",
		env:    []string{"GOMODCACHE=" + deps + "/go", "GOPROXY=off", "GOTOOLCHAIN=local"},
		use:    "go finds the modules."},
	"package-lock.json": {registry: "npm", files: []string{"package-lock.json", "package.json"},
		variable: "npm_config_registry",
		script: "cp package.json package-lock.json " + out + " && cd " + out +
			" && npm ci --ignore-scripts --no-audit --no-fund",
		env: []string{"NODE_PATH=" + deps + "/node_modules"},
		use: "Link them where package.json is: ln -s " + deps + "/node_modules node_modules"},
	"requirements.txt": {registry: "pip", files: []string{"requirements.txt"}, variable: "PIP_INDEX_URL",
		script: "python3 -m pip install --require-hashes --only-binary :all: --no-cache-dir --no-input " +
			"--disable-pip-version-check --target " + out + "/python -r requirements.txt",
		env: []string{"PYTHONPATH=" + deps + "/python"},
		use: "python3 finds the packages."},
}

// installerOf returns the installer of a lock file.
func installerOf(lock string) (installer, error) {
	i, known := installers[path.Base(lock)]
	switch {
	case !known:
		return i, fault.Invalid("path", "a file called go.sum, package-lock.json or requirements.txt is required")
	case len(lock) > maxPath, path.IsAbs(lock), path.Clean(lock) != lock, strings.HasPrefix(lock, "../"),
		strings.ContainsFunc(lock, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return i, fault.Invalid("path", "a clean path in the repository is required")
	}
	return i, nil
}

// beside returns the paths of all files that the installer needs, in the folder of the lock file.
func (i installer) beside(lock string) (all []string) {
	for _, name := range i.files {
		all = append(all, path.Join(path.Dir(lock), name))
	}
	return all
}

// command returns the shell command that installs.
func (i installer) command(registry string) string {
	if registry == "" {
		return i.script
	}
	return "export " + i.variable + "='" + strings.ReplaceAll(registry, "'", `'\''`) + "'\n" + i.script
}

// dependencies returns the environment of a container with a volume of this kind.
func dependencies(kind string) []string {
	for _, i := range installers {
		if i.registry == kind {
			return i.env
		}
	}
	return nil
}
