package model_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
)

func TestWithoutThoughts(t *testing.T) {
	const (
		thought = `{"text":"hm","thought":true}`
		text    = `{"text":"the \"thought\" \u003cb>"}`
		call    = `{"thoughtSignature":"c2ln","functionCall":{"name":"f","args":{"n":1.50,"thought":true}}}`
	)
	content := func(parts string) string { return `{"role":"model","parts":[` + parts + `]}` }
	for name, c := range map[string]struct{ in, out string }{
		"no thought":       {content(text + "," + call), content(text + "," + call)},
		"thoughts":         {content(thought + "," + text + "," + thought + "," + call), content(text + "," + call)},
		"a signed thought": {content(`{"text":"hm","thought":true,"thoughtSignature":"c2ln"},` + text), content(text)},
		"a thought that is none": {content(`{"text":"hm","thought":false}`),
			content(`{"text":"hm","thought":false}`)},
		"nothing else": {content(thought), content(thought)},
		"unreadable":   {`{"thought"`, `{"thought"`},
	} {
		if got := model.WithoutThoughts(json.RawMessage(c.in)); string(got) != c.out {
			t.Errorf("%s: %s; want got %v", name, got, c.out)
		}
	}
}
