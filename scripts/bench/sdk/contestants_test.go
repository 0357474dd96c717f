package sdk

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/firebase/genkit/go/ai"
	gsession "github.com/firebase/genkit/go/core/x/session"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/googlegenai"
	"google.golang.org/genai"
	_ "modernc.org/sqlite"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

// turn answers one prompt of a session.
type turn = func(ctx context.Context, prompt string) (string, error)

// contestants opens each with a directory for what it keeps, and returns what begins a session, and what ends it all.
var contestants = map[string]func(dir string) (session func() turn, end func() error, err error){
	"1-bare":               bare,
	"2-countersign-memory": func(string) (func() turn, func() error, error) { return ours(nil) },
	"3-countersign-sqlite": func(dir string) (func() turn, func() error, error) {
		st, err := embedded.Open(dir, time.Now)
		if err != nil {
			return nil, nil, err
		}
		return ours(st)
	},
	"4-genkit-memory": func(string) (func() turn, func() error, error) {
		return kit(gsession.NewInMemoryStore[history](), func() error { return nil })
	},
	"5-genkit-sqlite": kitOnDisk,
}

const (
	modelName    = "gemini-3-flash"
	instructions = "You are a helpful agent. Use the tools when asked."
)

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

type weather struct {
	Celsius float64 `json:"celsius"`
}

// weathered counts the calls of the tool.
var weathered atomic.Int64

func weatherOf(place) (weather, error) {
	weathered.Add(1)
	return weather{21}, nil
}

// bare is a chat of the genai SDK, which keeps its history in memory and has only the tools written here.
func bare(string) (func() turn, func() error, error) {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "fake", Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: os.Getenv(urlVar)}})
	if err != nil {
		return nil, nil, err
	}
	config := &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(instructions, ""),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "get_weather",
			Description: "The weather of a city now.", ParametersJsonSchema: map[string]any{"type": "object",
				"required":   []string{"city"},
				"properties": map[string]any{"city": map[string]any{"type": "string"}}}}}}}}
	session := func() turn {
		chat, err := c.Chats.Create(context.Background(), modelName, config, nil)
		return func(ctx context.Context, prompt string) (string, error) {
			if err != nil {
				return "", err
			}
			r, err := chat.SendMessage(ctx, genai.Part{Text: prompt})
			for err == nil && len(r.FunctionCalls()) > 0 {
				call := r.FunctionCalls()[0]
				city, _ := call.Args["city"].(string)
				now, _ := weatherOf(place{city})
				r, err = chat.SendMessage(ctx, genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID,
					Name: call.Name, Response: map[string]any{"celsius": now.Celsius}}})
			}
			if err != nil {
				return "", err
			}
			return r.Text(), nil
		}
	}
	return session, func() error { return nil }, nil
}

// ours is Countersign's SDK, whose sessions are in memory where there is no store.
func ours(st store.Store) (func() turn, func() error, error) {
	tool := countersign.DefineTool(
		countersign.ToolConfig{Name: "get_weather", Description: "The weather of a city now."},
		func(_ context.Context, _ *countersign.SessionContext, in place) (weather, error) {
			return weatherOf(in)
		})
	agent, err := countersign.New(countersign.Options{Instructions: instructions, Model: modelName, Store: st,
		Tools:    []*countersign.Tool{tool},
		Provider: countersign.Gemini(countersign.GeminiConfig{APIKey: "fake", BaseURL: os.Getenv(urlVar)})})
	if err != nil {
		return nil, nil, err
	}
	session := func() turn {
		s := agent.NewSession()
		return func(ctx context.Context, prompt string) (string, error) {
			res, err := s.Send(ctx, prompt)
			if err != nil {
				return "", err
			}
			return res.Text, nil
		}
	}
	return session, func() error {
		err := agent.Close()
		if st != nil {
			err = errors.Join(err, st.Close())
		}
		return err
	}, nil
}

// history is what a session of genkit keeps.
type history struct {
	Messages []*ai.Message `json:"messages"`
}

// kit is Genkit for Go with its sessions, which are experimental and have one store: memory.
func kit(st gsession.Store[history], end func() error) (func() turn, func() error, error) {
	ctx, stop := context.WithCancel(context.Background()) // which ends what Init leaves running
	g := genkit.Init(ctx, genkit.WithPlugins(&googlegenai.GoogleAI{APIKey: "fake"}))
	tool := genkit.DefineTool(g, "get_weather", "The weather of a city now.",
		func(_ *ai.ToolContext, in place) (weather, error) { return weatherOf(in) })
	session := func() turn {
		s, err := gsession.New(context.Background(), gsession.WithStore(st))
		return func(ctx context.Context, prompt string) (string, error) {
			if err != nil {
				return "", err
			}
			r, err := genkit.Generate(ctx, g, ai.WithModelName("googleai/gemini-2.5-flash"), ai.WithTools(tool),
				ai.WithMaxTurns(3), ai.WithSystem(instructions),
				ai.WithMessages(append(s.State().Messages, ai.NewUserTextMessage(prompt))...))
			if err != nil {
				return "", err
			}
			var kept []*ai.Message
			for _, m := range r.History() {
				if m.Role != ai.RoleSystem {
					kept = append(kept, m)
				}
			}
			return r.Text(), s.UpdateState(ctx, history{kept})
		}
	}
	return session, func() error { stop(); return end() }, nil
}

// disk is a store of genkit's sessions in SQLite, as durable as ours.
type disk struct{ db *sql.DB }

func kitOnDisk(dir string) (func() turn, func() error, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sessions.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE sessions(id TEXT PRIMARY KEY, data BLOB NOT NULL)"); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return kit(disk{db}, db.Close)
}

// Get implements [gsession.Store].
func (d disk) Get(ctx context.Context, id string) (*gsession.Data[history], error) {
	var text []byte
	err := d.db.QueryRowContext(ctx, "SELECT data FROM sessions WHERE id=?", id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var data gsession.Data[history]
	return &data, json.Unmarshal(text, &data)
}

// Save implements [gsession.Store].
func (d disk) Save(ctx context.Context, id string, data *gsession.Data[history]) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = d.db.ExecContext(ctx, "INSERT INTO sessions VALUES(?,?) ON CONFLICT(id) DO UPDATE SET data=excluded.data",
		id, text)
	return err
}
