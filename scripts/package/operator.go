package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

const (
	maxOperatorFiles = 200
	maxOperatorBytes = 1 << 20
)

// readsOperatorFiles reports whether a function reads files of the operator: declared actions, agents, MCP servers,
// webhooks, or the model's configuration.
func readsOperatorFiles(f infra.Function) bool {
	return slices.ContainsFunc(f.Parts, func(part string) bool {
		return part == "actions" || part == "agents" || part == "model" || part == "webhooks"
	})
}

// operatorFiles reads the files and folders of -with. The keys are paths below the root.
func operatorFiles(root string, paths []string) (files, error) {
	content, size := files{}, 0
	for _, given := range paths {
		before := len(content)
		if !filepath.IsLocal(given) || filepath.Clean(given) == "." {
			return nil, fmt.Errorf("-with %s must be a path below the repository's folder, such as actions", given)
		}
		err := filepath.WalkDir(filepath.Join(root, given), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			if name := filepath.ToSlash(rel); file != filepath.Join(root, given) && path.Ext(name) == ".go" {
				return nil // Go files in a folder get into the archive only if they are imported
			}
			name := filepath.ToSlash(rel)
			body, err := operatorFile(file, name, d, maxOperatorBytes-size)
			if err != nil {
				return err
			}
			content[name] = body
			if size += len(body); len(content) > maxOperatorFiles {
				return fmt.Errorf("more than %d files: name only the files that a function reads",
					maxOperatorFiles)
			}
			return nil
		})
		if err == nil && len(content) == before {
			err = errors.New("no data files in it: only data can be added")
		}
		if err != nil {
			return nil, fmt.Errorf("-with %s: %w", given, err)
		}
	}
	return content, nil
}

func operatorFile(file, name string, d fs.DirEntry, room int) ([]byte, error) {
	if !d.Type().IsRegular() {
		return nil, fmt.Errorf("%s is a link or not a regular file: replace it with the file itself", name)
	}
	if path.Ext(name) == ".go" || strings.HasPrefix(path.Base(name), "go.") {
		return nil, fmt.Errorf("%s would be built into the function: only data can be added", name)
	}
	info, err := d.Info()
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(room) {
		return nil, fmt.Errorf("more than %[2]d bytes with %[1]s: name only files that a function reads", name,
			maxOperatorBytes)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return body, forbidden(name, body)
}

var (
	secretName = regexp.MustCompile(
		`(?i)^(\.env(\..*)?|.*\.(pem|key|p12|pfx|jks)|id_(rsa|ecdsa|ed25519)|\.netrc|\.npmrc|credentials.*|.*\.tfstate.*|.*\.tfvars)$`)
	secretText = regexp.MustCompile(
		`-----BEGIN [A-Z ]*PRIVATE KEY-----|AIza[0-9A-Za-z_-]{30}|GOCSPX-[0-9A-Za-z_-]{20}|ya29\.[0-9A-Za-z_-]{20}|"type":\s*"service_account"`)
	// A value that names an environment variable ($NAME) is not a secret.
	secretValue = regexp.MustCompile(
		`(?im)^[\s-]*["']?[a-z_-]*(api_?key|secret|password|private_?key)["']?\s*:\s*["']?[^\s"'$#]{8,}`)
	// In a script, a value without quotes is an expression, and a value with white space is a label.
	secretLiteral = regexp.MustCompile(
		"(?i)(api_?key|secret|password|private_?key)[\"']?\\s*[:=]\\s*[\"'`][^\\s\"'`$#]{8,}[\"'`]")
)

// forbidden returns an error for a file that must not be in an archive. The error never shows a secret.
func forbidden(name string, body []byte) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".git" || part == "testdata" || part == "vendor" || part == "node_modules" ||
			secretName.MatchString(part) {
			return fmt.Errorf("%s must not be in an archive: leave it out, and pass secrets through Secret Manager",
				name)
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return fmt.Errorf("%s is a test, and tests are not deployed: leave it out", name)
	}
	if strings.HasPrefix(name, "shared/testkit/") {
		return fmt.Errorf("%s is for tests, and tests are not deployed: do not import shared/testkit", name)
	}
	value := secretValue
	if ext := path.Ext(name); ext == ".js" || ext == ".mjs" {
		value = secretLiteral
	}
	if path.Ext(name) != ".go" && (secretText.Match(body) || value.Match(body)) {
		return fmt.Errorf("%s seems to contain a secret: remove it, and pass it through Secret Manager", name)
	}
	return nil
}
