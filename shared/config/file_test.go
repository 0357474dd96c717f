package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-run/countersign/shared/config"
)

func writeFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gemini.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const wholeFile = "# comment\napiKey: 'AIzaFromFile'\nmodel: gemini-from-file\nsystemPrompt: |\n  You are a shop's " +
	"assistant.\n"

func TestFileBelowEnvironment(t *testing.T) {
	env := map[string]string{"GEMINI_CONFIG": writeFile(t, wholeFile)}
	c := mustLoad(t, env, nil, config.Model)
	if c.GeminiAPIKey.Reveal() != "AIzaFromFile" || c.GeminiModel != "gemini-from-file" ||
		c.SystemPrompt != "You are a shop's assistant.\n" {
		t.Errorf("got %s, %q, %q; want c.GeminiAPIKey.Reveal() “AIzaFromFile”, c.GeminiModel "+
			"“gemini-from-file”, c.SystemPrompt %q",
			c.GeminiAPIKey.Reveal(), c.GeminiModel, c.SystemPrompt, "You are a shop's assistant.\n")
	}
	c = mustLoad(t, env, map[string]string{"GEMINI_API_KEY": "AIzaFromEnv", "GEMINI_MODEL": "gemini-from-env",
		"PERSONA": "You are kind."}, config.Model)
	if c.GeminiAPIKey.Reveal() != "AIzaFromEnv" || c.GeminiModel != "gemini-from-env" || c.SystemPrompt != "" ||
		c.Persona != "You are kind." {
		t.Errorf("the environment does not win: %s, %q, %q", c.GeminiAPIKey.Reveal(), c.GeminiModel, c.SystemPrompt)
	}
	for _, s := range c.Redacted() {
		if strings.Contains(s.Value, "AIza") {
			t.Errorf("%s is shown as %q", s.Variable, s.Value)
		}
	}
}

func TestFileInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if c := mustLoad(t, nil, nil); c.GeminiAPIKey.IsSet() {
		t.Fatal("there is a key, and no file")
	}
	if err := errors.Join(os.Mkdir("config", 0o700),
		os.WriteFile(config.FilePath, []byte("apiKey: AIzaFromFile"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if c := mustLoad(t, nil, nil, config.Model); c.GeminiAPIKey.Reveal() != "AIzaFromFile" {
		t.Errorf("the key is %s", c.GeminiAPIKey)
	}
}

func TestFileEmpty(t *testing.T) {
	for _, text := range []string{"", "# only comments\n", "\ufeff# apiKey: x\n", "model: m-1\n"} {
		if _, err := config.ReadFile(func(string) string { return writeFile(t, text) }); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRefusedFiles checks that each error names the place, and never the key.
func TestRefusedFiles(t *testing.T) {
	const key, place = "AIzaCANARY", "gemini.yaml:"
	for name, c := range map[string]struct{ text, want string }{
		"placeholder": {"apiKey: '<your-gemini-api-key>'",
			"1: apiKey is 21 characters, not shown; it needs a Gemini API key from " +
				"https://aistudio.google.com/apikey"},
		"empty key": {"apiKey: ''",
			"1: apiKey is 0 characters, not shown; it needs a Gemini API key"},
		"no value": {"# c\napiKey:",
			"2: apiKey is not text; it needs a Gemini API key from https://aistudio.google.com/apikey, in quotes"},
		"number":     {"model: 3.5", "1: model is not text; it needs the name of a model"},
		"list":       {"apiKey: [AIzaCANARY]", "1: apiKey is not text"},
		"key of two": {"apiKey: AIzaCANARY and more", "1: apiKey is 19 characters, not shown"},
		"unknown key": {"model: m\nAIzaCANARY: x",
			"2 is an unknown key of 10 characters; it needs to be apiKey, model or systemPrompt"},
		"twice": {"apiKey: AIzaCANARY\nmodel: m\napiKey: AIzaCANARY",
			"3 is a duplicate key; it needs each key once"},
		"no mapping": {"- AIzaCANARY",
			"1 is not a mapping; it needs the keys apiKey, model and systemPrompt"},
		"one word": {"apiKey:AIzaCANARY", "1 is not a mapping"},
		"broken": {"model: m\napiKey: 'AIzaCANARY",
			"2 is not YAML; it needs lines such as apiKey: 'the key'"},
		"unknown anchor":  {"apiKey: *AIzaCANARY", "is not YAML"},
		"alias":           {"model: &AIzaCANARY m\napiKey: *AIzaCANARY", "2: apiKey is not text"},
		"merge":           {"<<: {apiKey: AIzaCANARY}", "1 is an unknown key"},
		"two documents":   {"model: m\n---\napiKey: AIzaCANARY", "1 is more than one document"},
		"model's shape":   {"model: 'a b'", `1: model is "a b"; it needs the name of a model`},
		"long prompt":     {"systemPrompt: '" + strings.Repeat("x", 8<<10+1) + "'", "1: systemPrompt is "},
		"control in text": {`systemPrompt: "a\u0007b"`, "1: systemPrompt is "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(nil, map[string]string{"GEMINI_CONFIG": writeFile(t, c.text)}, config.Model)
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) != 1 {
				t.Fatalf("the error is %v, and one line was expected", err)
			}
			_, after, _ := strings.Cut(err.Error(), place)
			if c.text != "" && !strings.Contains(after, c.want) {
				t.Errorf("got  %s\nwant %s", after, c.want)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the key or a line break is in %q", err)
			}
		})
	}
}

func TestFileUnreadable(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		t.TempDir(): "is unreadable; it needs to be a file",
		pipe:        "is unreadable; it needs to be a file",
		writeFile(t, "#"+strings.Repeat("x", 64<<10)): "of at most 64 KiB",
		"/nowhere/gemini.yaml":                        `GEMINI_CONFIG is "/nowhere/gemini.yaml"; it needs the path of an existing file`,
		"a\nb":                                        `GEMINI_CONFIG is "a\nb"; it needs the path of a file`,
	} {
		if _, err := load(nil, map[string]string{"GEMINI_CONFIG": path}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add(wholeFile)
	f.Add("apiKey: *a\n")
	f.Add("#comment\napiKey: 'AIz}Fr mFile'\nmodel: ge") // a template's placeholder
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.ReadFile(func(string) string { return writeFile(t, text) })
		var problems config.Problems
		left := file
		if file.Placeholder && len(file.APIKey.Reveal()) == 0 { // the other fields are valid
			left = config.File{}
		}
		if err != nil && (!errors.As(err, &problems) || left != config.File{}) {
			t.Errorf("%#v with the error %v", file, err)
		}
	})
}
