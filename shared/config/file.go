package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// File is the content of config/.gemini.yaml (seed 001). The environment takes precedence.
type File struct {
	Path         string // empty: no file
	APIKey       Secret
	Model        string // empty: not set
	SystemPrompt string // precedes the agent's instructions; can be empty
	Placeholder  bool   // the only problem is that the key is still a template's placeholder; see ReadFile
}

// FilePath is the default of GEMINI_CONFIG.
const FilePath = "config/.gemini.yaml"

// maxFile is the maximum size of the file, in bytes.
const maxFile = 64 << 10

const (
	keyNeeds      = "a Gemini API key from https://aistudio.google.com/apikey"
	modelNeeds    = "the name of a model, such as " + CurrentFlash
	modelsNeeds   = "up to 20 names of models with commas between them, such as " + CurrentFlash
	fallbackNeeds = "up to 5 names of models with commas between them, such as " + CurrentFlash
	promptNeeds   = "a text of at most 8 KiB in UTF-8, without control characters"
)

// ReadFile reads the file that GEMINI_CONFIG names, or else [FilePath]. A missing file yields a zero File, unless
// GEMINI_CONFIG names it. The error is [Problems], each with the file and the line. If the File has Placeholder set,
// the only problem is its key, and its other fields are valid.
func ReadFile(getenv func(string) string) (File, error) {
	r := &reader{getenv: getenv}
	named := r.get("GEMINI_CONFIG")
	path := cmp.Or(named, FilePath)
	if strings.ContainsFunc(path, unicode.IsControl) {
		return File{}, Problems{{"GEMINI_CONFIG", show(named, false), "the path of a file"}}
	}
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return File{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return File{}, Problems{{"GEMINI_CONFIG", show(named, false), "the path of an existing file"}}
	case err != nil:
		return File{}, Problems{{path, "unreadable",
			"to be a file that this process can read, of at most 64 KiB"}}
	}
	return parseFile(path, data)
}

// readBounded checks the file's type before opening it, because opening a pipe would block.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		err = errors.New("the file is too large")
	}
	return data, errors.Join(err, f.Close())
}

var errorLine = lazyregexp.New(`^yaml: line (\d+):`)

// parseFile decodes the file. It never copies the parser's error texts into a problem, because they may quote the key.
func parseFile(path string, data []byte) (File, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return File{Path: path}, nil
	}
	if err != nil {
		line := 1
		if m := errorLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // the pattern matches digits only
		}
		return File{}, Problems{at(path, line, "", "not YAML", "lines such as apiKey: 'the key'")}
	}
	if !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		return File{}, Problems{at(path, 1, "", "more than one document", "to be one YAML document without ---")}
	}
	f := fileReader{path: path, seen: map[string]bool{}, File: File{Path: path}}
	f.read(doc.Content[0])
	if len(f.problems) == 0 {
		return f.File, nil
	}
	if f.Placeholder = f.filler && len(f.problems) == 1; f.Placeholder {
		return f.File, f.problems
	}
	return File{}, f.problems
}

// fileReader reads the file's keys and collects problems.
type fileReader struct {
	path     string
	seen     map[string]bool
	problems Problems
	filler   bool // the key is a placeholder
	File
}

func (f *fileReader) read(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		f.fail(root, "", "not a mapping", "the keys apiKey, model and systemPrompt")
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		f.entry(root.Content[i], root.Content[i+1])
	}
}

func (f *fileReader) entry(key, value *yaml.Node) {
	name := key.Value
	if f.seen[name] {
		f.fail(key, "", "a duplicate key", "each key once")
		return
	}
	f.seen[name] = true
	switch name {
	case "apiKey":
		fits := func(v string) bool {
			f.filler = secretFillers.MatchString(v)
			return v != "" && isKey(v) && !f.filler
		}
		f.APIKey = NewSecret(f.text(key, value, true, keyNeeds, fits))
	case "model":
		f.Model = f.text(key, value, false, modelNeeds, unlessFiller(isModel))
	case "systemPrompt":
		f.SystemPrompt = f.text(key, value, false, promptNeeds, isText)
	default: // never show the name: if the space after the colon is missing, the name contains the API key
		f.fail(key, "", "an unknown key of "+plural(len(name), "character", "characters"),
			"to be apiKey, model or systemPrompt")
	}
}

func (f *fileReader) text(key, value *yaml.Node, secret bool, needs string, fits func(string) bool) string {
	if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
		f.fail(value, key.Value, "not text", needs+", in quotes")
		return ""
	}
	if !fits(value.Value) {
		f.fail(value, key.Value, show(value.Value, secret), needs)
		return ""
	}
	return value.Value
}

func (f *fileReader) fail(n *yaml.Node, key, holds, needs string) {
	f.problems = append(f.problems, at(f.path, n.Line, key, holds, needs))
}

// at returns a Problem whose place has the format of compiler errors, which editors recognise.
func at(path string, line int, key, holds, needs string) Problem {
	place := fmt.Sprintf("%s:%d", path, line)
	if key != "" {
		place += ": " + key
	}
	return Problem{place, holds, needs}
}

// fallback calls ReadFile for the values that the environment lacks. A placeholder key is an error only if the
// environment names neither a key nor a Vertex AI project.
func fallback(getenv func(string) string) (File, error) {
	f, err := ReadFile(getenv)
	if f.Placeholder && (getenv("GEMINI_API_KEY") != "" || getenv("VERTEX_AI_PROJECT_ID") != "") {
		err = nil
	}
	return f, err
}

// under returns getenv with the file's values as fallbacks.
func (f File) under(getenv func(string) string) func(string) string {
	said := map[string]string{"GEMINI_API_KEY": f.APIKey.Reveal(), "GEMINI_MODEL": f.Model}
	return func(name string) string { return cmp.Or(getenv(name), said[name]) }
}
