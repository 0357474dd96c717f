// Command bare is the baseline of the comparison: the same work by a handwritten handler with only net/http, the genai
// SDK and SQLite. It commits a thread before it answers, takes an approval by compare-and-swap before the effect, and
// commits the outcome with the last words. It has one user, no token, no audit, no limits, no hash of the approved
// arguments, and after a crash it does not know whether the effect happened.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genai"
	_ "modernc.org/sqlite"

	"github.com/countersign-run/countersign/scripts/bench/peer"
)

var errNotPending = errors.New("this does not wait for an approval")

type handler struct {
	models         *genai.Models
	config         *genai.GenerateContentConfig
	get, put, swap *sql.Stmt
}

type thread struct {
	id, state string
	contents  []*genai.Content
}

func main() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	client := peer.Must(genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "fake",
		Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: transport},
		HTTPOptions: genai.HTTPOptions{BaseURL: peer.ModelURL()}}))
	db := peer.Must(sql.Open("sqlite", peer.Database()))
	db.SetMaxOpenConns(1)
	peer.Must(db.Exec("CREATE TABLE IF NOT EXISTS threads(id TEXT PRIMARY KEY, state TEXT NOT NULL, contents BLOB)"))
	h := &handler{models: client.Models, config: config(),
		get: peer.Must(db.Prepare("SELECT state, contents FROM threads WHERE id=?")),
		put: peer.Must(db.Prepare("INSERT INTO threads VALUES(?,?,?) ON CONFLICT(id) DO UPDATE SET " +
			"state=excluded.state, contents=excluded.contents")),
		swap: peer.Must(db.Prepare("UPDATE threads SET state=? WHERE id=? AND state=?"))}
	peer.Serve(peer.Handlers{Run: h.run, Approve: h.approve})
}

func config() *genai.GenerateContentConfig {
	schema := map[string]any{"type": "object", "required": []string{"text"},
		"properties": map[string]any{"text": map[string]any{"type": "string"}}}
	return &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(peer.System, ""),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "send_mail", Description: "Sends a mail. Needs approval.", ParametersJsonSchema: schema}}}}}
}

func (h *handler) run(ctx context.Context, id, prompt string) (peer.Answer, error) {
	t, err := h.load(id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return peer.Answer{}, err
	}
	t.contents = append(t.contents, genai.NewContentFromText(prompt, "user"))
	return h.ask(ctx, t)
}

func (h *handler) approve(ctx context.Context, approval string) (peer.Answer, error) {
	id, call, _ := strings.Cut(approval, "~")
	res, err := h.swap.Exec("executing:"+call, id, "awaiting:"+call)
	if err != nil {
		return peer.Answer{}, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return peer.Answer{}, errors.Join(err, errNotPending)
	}
	t, err := h.load(id)
	if err != nil {
		return peer.Answer{}, err
	}
	c := asked(t.contents[len(t.contents)-1])
	text, _ := c.Args["text"].(string)
	t.contents = append(t.contents, &genai.Content{Role: "user", Parts: []*genai.Part{{
		FunctionResponse: &genai.FunctionResponse{ID: c.ID, Name: c.Name, Response: peer.SendMail(text)}}}})
	return h.ask(ctx, t)
}

// ask calls the model, and commits the thread.
func (h *handler) ask(ctx context.Context, t thread) (peer.Answer, error) {
	r, err := h.models.GenerateContent(ctx, peer.Model(), t.contents, h.config)
	if err != nil {
		return peer.Answer{}, err
	}
	t.contents = append(t.contents, r.Candidates[0].Content)
	if c := asked(r.Candidates[0].Content); c != nil {
		t.state = "awaiting:" + c.ID
		return peer.Awaiting(t.id, t.id+"~"+c.ID), h.store(t)
	}
	t.state = "done"
	return peer.Completed(t.id, r.Text()), h.store(t)
}

func asked(c *genai.Content) *genai.FunctionCall {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			return p.FunctionCall
		}
	}
	return nil
}

func (h *handler) load(id string) (thread, error) {
	t := thread{id: id}
	var contents []byte
	if err := h.get.QueryRow(id).Scan(&t.state, &contents); err != nil {
		return t, err
	}
	return t, json.Unmarshal(contents, &t.contents)
}

func (h *handler) store(t thread) error {
	contents, err := json.Marshal(t.contents)
	if err != nil {
		return err
	}
	_, err = h.put.Exec(t.id, t.state, contents)
	return err
}
