package web

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
)

// description is infra/openapi.yaml as JSON; a test in infra writes it.
//
//go:embed openapi.json
var description []byte

// describedServer is the only server in the description.
const describedServer = `"url": "https://agent.example.com"`

// describe returns the description with this deployment's server: the API's base, or the origin that served the
// description.
func describe(base string) (file, error) {
	if base == "" {
		base = "/"
	}
	url, err := json.Marshal(base)
	if err != nil {
		return file{}, err
	}
	server := `"url": ` + string(url)
	if strings.Contains(base, "{function}") {
		server += `, "variables": {"function": {"default": "run", "description": "The function that serves the path."}}`
	}
	return newFile("openapi.json", bytes.Replace(description, []byte(describedServer), []byte(server), 1))
}
