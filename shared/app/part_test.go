package app_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/all"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/terminals"
	"github.com/countersign-run/countersign/shared/app/tools"
)

// TestOpenWithWrongParts opens lists with a doubled, missing or misplaced part.
func TestOpenWithWrongParts(t *testing.T) {
	cfg := deploy(t).App.Config
	for _, c := range []struct {
		name string
		with []app.Option
		want string
	}{
		{"twice", []app.Option{app.With(gemini.Part, gemini.Part)}, "part model: listed twice"},
		{"twice, once in a bundle", []app.Option{all.Parts, app.With(fetch.Part)}, "part fetch: listed twice"},
		{"missing", []app.Option{app.With(terminals.Attach)},
			"part attach: it uses the part hosts, which must be listed before it"},
		{"too early", []app.Option{app.With(github.Token, github.Part)},
			"part github-token: it uses the part github, which must be listed before it"},
		{"replaced and missing", []app.Option{app.With(gemini.Part), app.Replace(fetch.Part)},
			"part fetch: no part of this name to replace"},
		{"a tool twice", []app.Option{app.With(repositories.Part, again())}, "tool github.readFile: added twice"},
	} {
		cfg.DataDir = t.TempDir()
		a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), c.with...)
		if err == nil {
			err = errors.Join(errors.New("it opens"), a.Close())
		}
		if err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// again is a part that adds a tool that already exists.
func again() app.Part {
	return app.Part{Name: "again", Tools: func(b *app.Builder) error {
		return b.Add(tool.Set{"github.readFile": b.Env.Tools["github.readFile"]})
	}}
}

// TestStagesOfParts checks that all parts complete one stage before any begins the next, in the order of the list, and
// that the client opened last closes first.
func TestStagesOfParts(t *testing.T) {
	var got []string
	cfg := deploy(t).App.Config
	cfg.DataDir = t.TempDir()
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), app.With(tools.Part, stages("a", &got),
		app.Part{Of: []app.Part{stages("b", &got)}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"a opens", "b opens", "a adds tools", "b adds tools", "a serves", "b serves", "b closes",
		"a closes"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// stages is a part that records its stages.
func stages(name string, into *[]string) app.Part {
	note := func(what string) { *into = append(*into, name+" "+what) }
	return app.Part{Name: name,
		Open: func(_ context.Context, b *app.Builder) error {
			b.Closes(closing(func() { note("closes") }))
			note("opens")
			return nil
		},
		Tools: func(*app.Builder) error { note("adds tools"); return nil },
		Serve: func(*app.Builder) error { note("serves"); return nil }}
}

type closing func()

func (c closing) Close() error { c(); return nil }
