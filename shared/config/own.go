package config

// besides names variables that other programs use too. Each counts as a setting of Countersign only if the variable
// that it maps to is set as well.
var besides = map[string]string{"GITHUB_TOKEN": "GITHUB_TOKEN_USER", "DOCKER_HOST": "DOCKER_IMAGES",
	"DOCKER_CERT_PATH": "DOCKER_IMAGES"}

// ours returns the environment without the variables that are meant for other programs. If K_SERVICE is set, all
// variables count.
func ours(getenv func(string) string) func(string) string {
	return func(name string) string {
		if with, ok := besides[name]; ok && getenv(with) == "" && getenv("K_SERVICE") == "" {
			return ""
		}
		return getenv(name)
	}
}
