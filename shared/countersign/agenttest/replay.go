package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/countersign/offline"
)

// recordVariable is the environment variable that turns recording on.
const recordVariable = "AGENTTEST_RECORD"

// Replay returns a model that repeats recorded answers. The file, by convention testdata/NAME.json, has each request
// with its answer. The test fails if a request differs from the recorded one; the message names the first content
// that differs. It also fails if there are more requests than recorded, and at its end if a recorded request was not
// made.
//
// With AGENTTEST_RECORD=1 in the environment, requests go to the real model, which is the one that
// countersign.Options uses without a Provider. A passing test rewrites the file at its end. The file has the
// conversation and the tools, and no credentials: if it would contain the value of an environment variable whose name
// suggests a key, a token, a secret or a password, the test fails and nothing is written.
func Replay(t testing.TB, file string) *Model {
	t.Helper()
	if os.Getenv(recordVariable) == "1" {
		return record(t, file)
	}
	recorded, err := read(file)
	if err != nil {
		t.Fatalf("agenttest: %v; %s=1 and a key for Gemini record it", err, recordVariable)
	}
	r := &replay{file: file, recorded: recorded}
	open := func(context.Context, string) (bridge.Answer, error) { return r.answer, nil }
	r.model = newModel(t, answeredBy(open), func() {
		if asked := len(r.model.Requests()); asked < len(recorded) {
			t.Errorf("agenttest: %d of the %d requests in %s were not made", len(recorded)-asked, len(recorded), file)
		}
	})
	return r.model
}

// exchange is one request and its answer, in the form of the file.
type exchange struct {
	Request asking   `json:"request"`
	Answer  answered `json:"answer"`
}

// asking is a request without the parts that are equal to those of the previous request.
type asking struct {
	// number of leading contents that equal those of the previous request
	Same         int               `json:"same,omitempty"`
	Contents     []json.RawMessage `json:"contents"`
	Instructions *string           `json:"instructions,omitempty"`
	Tools        *[]Tool           `json:"tools,omitempty"` // nil: as in the previous request
	Settings     map[string]any    `json:"settings,omitempty"`
}

// answered is an answer of the model.
type answered struct {
	Content    json.RawMessage `json:"content,omitempty"` // verbatim except for white space
	Finish     string          `json:"finish"`
	Usage      model.Usage     `json:"usage"`
	Model      string          `json:"model"`
	Text       string          `json:"text,omitempty"` // with Correction: the text that the user saw
	Correction string          `json:"correction,omitempty"`
}

// whole is a complete request.
type whole struct {
	contents     []json.RawMessage
	instructions string
	tools        []Tool
	settings     map[string]any
}

// answeredBy returns a model of package offline that gets its answers from a function instead of a script.
func answeredBy(open bridge.Opener) *offline.Model { return bridge.NewModel(open).(*offline.Model) }

// wholeOf returns request n to the model.
func wholeOf(m *Model, n int, req model.Request) whole {
	r := m.Requests()[n-1]
	w := whole{r.Contents, r.Instructions, r.Tools, map[string]any{}}
	settings, err := json.Marshal(req.Settings)
	if err == nil {
		err = json.Unmarshal(settings, &w.settings)
	}
	if err != nil {
		panic("agenttest: " + err.Error()) // numbers and texts
	}
	w.settings["Mode"], w.settings["Allowed"] = r.Mode, r.Allowed
	for name, v := range w.settings {
		if v == nil || v == "" || v == false || v == 0.0 || fmt.Sprint(v) == "[]" {
			delete(w.settings, name)
		}
	}
	delete(w.settings, "Calling") // Mode has this
	delete(w.settings, "Forced")  // Allowed has this
	return w
}

// after returns the request as it is written after a previous one.
func (w whole) after(before whole) asking {
	same := 0
	for same < min(len(w.contents), len(before.contents)) && bytes.Equal(w.contents[same], before.contents[same]) {
		same++
	}
	a := asking{Same: same, Contents: w.contents[same:], Settings: w.settings}
	if w.instructions != before.instructions {
		a.Instructions = &w.instructions
	}
	if different(w.tools, before.tools) != "" {
		a.Tools = &w.tools
	}
	return a
}

// behind returns the complete request. A recording stores only the part of a request that follows the previous request.
func (a asking) behind(before whole) (whole, error) {
	if a.Same < 0 || a.Same > len(before.contents) {
		return whole{}, fmt.Errorf("%d contents differ from those of the previous request", a.Same)
	}
	w := whole{slices.Concat(before.contents[:a.Same], a.Contents), before.instructions, before.tools, a.Settings}
	if a.Instructions != nil {
		w.instructions = *a.Instructions
	}
	if a.Tools != nil {
		w.tools = *a.Tools
	}
	return w, nil
}

// differs returns the place of the first difference from the recorded request and its description, or empty strings.
func (w whole) differs(recorded whole) string {
	for i := range min(len(w.contents), len(recorded.contents)) {
		if d := different(recorded.contents[i], w.contents[i]); d != "" {
			return fmt.Sprintf("contents[%d]%s", i, d)
		}
	}
	if n, r := len(w.contents), len(recorded.contents); n > r {
		return fmt.Sprintf("contents[%d]: missing in the recording, now is %s", r, shown(w.contents[r]))
	} else if n < r {
		return fmt.Sprintf("contents[%d]: was %s, now is missing", n, shown(recorded.contents[n]))
	}
	for _, part := range []struct {
		name          string
		recorded, now any
	}{{"instructions", recorded.instructions, w.instructions}, {"tools", recorded.tools, w.tools},
		{"settings", recorded.settings, w.settings}} {
		if d := different(part.recorded, part.now); d != "" {
			return part.name + d
		}
	}
	return ""
}

// replay answers from a recording.
type replay struct {
	file     string
	recorded []exchange
	model    *Model

	mu     sync.Mutex
	before whole
}

func (r *replay) answer(_ context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > len(r.recorded) {
		r.model.fail("%s has %d requests, and this is one more; it ends in %s", r.file, len(r.recorded),
			shown(req.Contents[len(req.Contents)-1]))
		return nil, refused()
	}
	x := r.recorded[n-1]
	recorded, err := x.Request.behind(r.before)
	if err != nil {
		r.model.fail("%s: request %d: %v", r.file, n, err)
		return nil, refused()
	}
	if d := wholeOf(r.model, n, req).differs(recorded); d != "" {
		r.model.fail("request %d differs from %s in %s\n(%s=1 records again)", n, r.file, d, recordVariable)
		return nil, refused()
	}
	r.before = recorded
	return x.Answer.reply(delta)
}

// reply returns the answer in the form that the client for Gemini returns.
func (a answered) reply(delta func(string)) (*model.Reply, error) {
	r := &model.Reply{Text: a.Text, Finish: a.Finish, Usage: a.Usage, Model: a.Model, Correction: a.Correction}
	if a.Content != nil {
		content := &bytes.Buffer{} // remove the file's white space
		if err := json.Compact(content, a.Content); err != nil {
			return nil, err
		}
		p, err := model.Parse(content.Bytes())
		if err != nil {
			return nil, err
		}
		r.Content, r.Text, r.Calls = content.Bytes(), p.Text, p.Calls
	}
	if delta != nil && r.Text != "" {
		delta(r.Text)
	}
	return r, nil
}

// read reads a recording.
func read(file string) ([]exchange, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no recording %s", file)
	}
	if err != nil {
		return nil, err
	}
	var all []exchange
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s is not a recording: %w", file, err)
	}
	return all, nil
}

// record calls the real model, and writes the file at the end of the test.
func record(t testing.TB, file string) *Model {
	t.Helper()
	real, err := bridge.Environment()
	if err == nil && real.Check != nil {
		err = real.Check()
	}
	if err != nil {
		t.Fatalf("agenttest: %s=1 asks the real model: %v", recordVariable, err)
	}
	var mu sync.Mutex
	var all []exchange
	var before whole
	var m *Model
	open := func(ctx context.Context, name string) (bridge.Answer, error) {
		client, err := real.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, n int, req model.Request, delta func(string)) (*model.Reply, error) {
			reply, err := client.Generate(ctx, req, delta)
			if err != nil {
				m.fail("request %d cannot be recorded: %v", n, err)
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			now := wholeOf(m, n, req)
			all, before = append(all, exchange{now.after(before), answerOf(reply)}), now
			return reply, nil
		}, nil
	}
	m = newModel(t, answeredBy(open), func() {
		mu.Lock()
		defer mu.Unlock()
		if err := write(file, all); err != nil {
			t.Errorf("agenttest: %v", err)
			return
		}
		t.Logf("agenttest: %s is recorded: %d requests", file, len(all))
	})
	return m
}

func answerOf(r *model.Reply) answered {
	a := answered{Content: r.Content, Finish: r.Finish, Usage: r.Usage, Model: r.Model, Correction: r.Correction}
	if r.Content == nil {
		a.Text = r.Text
	}
	return a
}

// write writes a recording atomically.
func write(file string, all []exchange) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // keep texts readable
	enc.SetIndent("", "\t")
	if err := enc.Encode(all); err != nil {
		return err
	}
	if name := secretIn(out.String(), secrets()); name != "" {
		return fmt.Errorf("%s is not written: the conversation contains the value of the environment variable %s", file,
			name)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp := file + ".tmp"
	return errors.Join(os.WriteFile(tmp, out.Bytes(), 0o644), os.Rename(tmp, file))
}

// secrets returns the environment, and the key for Gemini from the configuration file if there is one.
func secrets() []string {
	all := os.Environ()
	if c, err := config.LoadModel(os.Getenv); err == nil {
		all = append(all, "GEMINI_API_KEY="+c.GeminiAPIKey.Reveal())
	}
	return all
}

// secretName matches the names of environment variables whose values are likely to be secrets.
var secretName = lazyregexp.New(`(?i)(KEY|TOKEN|SECRET|PASSW|CREDENTIAL)`)

// secretIn returns the name of the variable whose value is in the text, or "". Short values are ignored, because they
// may be ordinary words.
func secretIn(text string, environ []string) string {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		quoted, err := strictjson.Marshal(value)
		if err == nil && len(value) >= 12 && secretName.MatchString(name) &&
			(strings.Contains(text, value) || strings.Contains(text, strings.Trim(string(quoted), `"`))) {
			return name
		}
	}
	return ""
}
