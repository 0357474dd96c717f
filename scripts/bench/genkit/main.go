// Command genkit is Firebase Genkit for Go: genkit.Generate with a tool that interrupts, and RestartWith for the
// approval. Genkit keeps no store of interrupted turns for Go, so the messages are kept here in SQLite.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/googlegenai"
	_ "modernc.org/sqlite"

	"github.com/countersign-run/countersign/scripts/bench/peer"
)

type mail struct {
	Text string `json:"text"`
}

type handler struct {
	g        *genkit.Genkit
	tool     *ai.ToolDef[mail, map[string]any]
	get, put *sql.Stmt
}

func main() {
	g := genkit.Init(context.Background(), genkit.WithPlugins(&googlegenai.GoogleAI{APIKey: "fake"}))
	db := peer.Must(sql.Open("sqlite", peer.Database()))
	db.SetMaxOpenConns(1)
	peer.Must(db.Exec("CREATE TABLE IF NOT EXISTS threads(id TEXT PRIMARY KEY, messages BLOB NOT NULL)"))
	h := &handler{g: g,
		tool: genkit.DefineTool(g, "send_mail", "Sends a mail. Needs approval.", sendMail),
		get:  peer.Must(db.Prepare("SELECT messages FROM threads WHERE id=?")),
		put: peer.Must(db.Prepare("INSERT INTO threads VALUES(?,?) ON CONFLICT(id) DO UPDATE SET " +
			"messages=excluded.messages"))}
	peer.Serve(peer.Handlers{Run: h.run, Approve: h.approve})
}

func sendMail(ctx *ai.ToolContext, in mail) (map[string]any, error) {
	if !ctx.IsResumed() {
		return nil, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"ask": "approval"}})
	}
	return peer.SendMail(in.Text), nil
}

func (h *handler) run(ctx context.Context, id, prompt string) (peer.Answer, error) {
	messages, err := h.load(id)
	if errors.Is(err, sql.ErrNoRows) {
		messages, err = []*ai.Message{ai.NewSystemTextMessage(peer.System)}, nil
	}
	if err != nil {
		return peer.Answer{}, err
	}
	return h.generate(ctx, id, ai.WithMessages(append(messages, ai.NewUserTextMessage(prompt))...))
}

func (h *handler) approve(ctx context.Context, id string) (peer.Answer, error) {
	messages, err := h.load(id)
	if err != nil {
		return peer.Answer{}, err
	}
	for _, p := range messages[len(messages)-1].Content {
		if p.IsInterrupt() {
			again, err := h.tool.RestartWith(p)
			if err != nil {
				return peer.Answer{}, err
			}
			return h.generate(ctx, id, ai.WithMessages(messages...), ai.WithToolRestarts(again))
		}
	}
	return peer.Answer{}, errors.New("this does not wait for an approval")
}

func (h *handler) generate(ctx context.Context, id string, opts ...ai.GenerateOption) (peer.Answer, error) {
	r, err := genkit.Generate(ctx, h.g, append(opts, ai.WithModelName("googleai/"+peer.Model()), ai.WithTools(h.tool),
		ai.WithMaxTurns(3))...)
	if err != nil {
		return peer.Answer{}, err
	}
	messages, err := json.Marshal(r.History())
	if err != nil {
		return peer.Answer{}, err
	}
	if _, err := h.put.Exec(id, messages); err != nil {
		return peer.Answer{}, err
	}
	if len(r.Interrupts()) > 0 {
		return peer.Awaiting(id, id), nil
	}
	return peer.Completed(id, r.Text()), nil
}

func (h *handler) load(id string) (messages []*ai.Message, err error) {
	var b []byte
	if err := h.get.QueryRow(id).Scan(&b); err != nil {
		return nil, err
	}
	return messages, json.Unmarshal(b, &messages)
}
