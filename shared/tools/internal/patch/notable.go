package patch

import (
	gopath "path"
	"slices"
	"strings"
)

// Notable returns what a careful reader should know about a file that a change writes, or "". head is the beginning of
// the new text, which may be empty, and program reports whether the file is executable.
func Notable(path, head string, program bool) string {
	lower := strings.ToLower(path)
	base := gopath.Base(lower)
	switch {
	case strings.HasPrefix(lower, ".github/workflows/") || strings.HasPrefix(lower, ".github/actions/") ||
		pipeline(lower):
		return "a build service runs it"
	case strings.HasPrefix(lower, ".github/"):
		return "GitHub reads it as a setting"
	case slices.ContainsFunc(strings.Split(lower, "/"), func(part string) bool {
		return strings.HasPrefix(part, ".git") || part == ".husky"
	}):
		return "Git reads it as a setting"
	case slices.Contains(locks, base):
		return "it decides which dependencies are installed"
	case program || strings.HasPrefix(head, "#!") || slices.Contains(scripts, gopath.Ext(base)) ||
		slices.Contains(builds, base) || strings.HasPrefix(base, "dockerfile"):
		return "it is a script, which a build or a person may run"
	}
	return ""
}

// pipeline reports whether a build service other than GitHub's reads the file.
func pipeline(path string) bool {
	return slices.Contains(pipelines, path) || strings.HasPrefix(path, ".circleci/") ||
		strings.HasPrefix(path, ".buildkite/") || strings.HasPrefix(path, ".gitea/workflows/") ||
		strings.HasPrefix(path, ".forgejo/workflows/")
}

var (
	pipelines = []string{".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "jenkinsfile",
		"bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml", ".drone.yml", ".woodpecker.yml", "appveyor.yml",
		".cirrus.yml"}
	locks = []string{"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
		"bun.lockb", "deno.lock", "go.sum", "go.mod", "cargo.lock", "gemfile.lock", "poetry.lock", "pipfile.lock",
		"uv.lock", "pdm.lock",
		"requirements.txt", "composer.lock", "mix.lock", "pubspec.lock", "podfile.lock", "packages.lock.json",
		"flake.lock", "gradle.lockfile", "package.resolved", ".terraform.lock.hcl"}
	scripts = []string{".sh", ".bash", ".zsh", ".fish", ".ps1", ".psm1", ".bat", ".cmd", ".command"}
	builds  = []string{"makefile", "gnumakefile", "justfile", "rakefile", "taskfile.yml", "containerfile",
		"vagrantfile",
		"package.json", "setup.py", "conftest.py", "build.rs", "build.gradle", "build.gradle.kts", "pom.xml",
		".pre-commit-config.yaml", ".envrc", "gruntfile.js", "gulpfile.js", "docker-compose.yml", "compose.yaml",
		"compose.yml"}
)

// Generated reports whether a program writes the file, so that a reader need not see all of it at once.
func Generated(path, text string) bool {
	lower := strings.ToLower(path)
	base := gopath.Base(lower)
	for _, folder := range []string{"dist/", "vendor/", "node_modules/", "third_party/"} {
		if strings.HasPrefix(lower, folder) || strings.Contains(lower, "/"+folder) {
			return true
		}
	}
	for _, end := range []string{".min.js", ".min.css", ".map", ".pb.go", "_pb2.py", ".pb.cc", ".pb.h", ".g.dart",
		".designer.cs", ".snap"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	head := text[:min(len(text), 1000)]
	return slices.Contains(locks, base) && base != "go.mod" && base != "requirements.txt" ||
		strings.Contains(head, "DO NOT EDIT") || strings.Contains(head, "@generated")
}
