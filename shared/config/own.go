package config

// besides names variables that people set for other programs too, each with the one of ours beside which it is meant
// for us.
var besides = map[string]string{"GITHUB_TOKEN": "GITHUB_TOKEN_USER", "DOCKER_HOST": "DOCKER_IMAGES",
	"DOCKER_CERT_PATH": "DOCKER_IMAGES"}

// ours returns the environment without what is meant for other programs. Where K_SERVICE is set everything is meant
// for us.
func ours(getenv func(string) string) func(string) string {
	return func(name string) string {
		if with, ok := besides[name]; ok && getenv(with) == "" && getenv("K_SERVICE") == "" {
			return ""
		}
		return getenv(name)
	}
}
