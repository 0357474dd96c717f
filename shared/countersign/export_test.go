package countersign_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// TestExport exports a session and imports it into another agent's store. The model gets the same contents, byte for
// byte, and the session continues.
func TestExport(t *testing.T) {
	m := newScript(call("get_weather", map[string]any{"city": "Lisbon"}), say("21 degrees."), say("Yes."), say("No."))
	o := countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}}
	s := newAgent(t, o).NewSession()
	for _, prompt := range []string{"How is Lisbon?", "Really?"} {
		if _, err := s.Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := s.Export(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	want, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := newAgent(t, o)
	in, err := other.Import(t.Context(), bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if in, err = other.Resume(t.Context(), in.ID()); err != nil {
		t.Fatal(err)
	}
	got, err := in.History(t.Context())
	if err != nil || asLines(got) != asLines(want) {
		t.Fatalf("%v: imported it is\n%s\nand was\n%s", err, asLines(got), asLines(want))
	}
	var again bytes.Buffer
	if err := in.Export(t.Context(), &again); err != nil || strings.Count(again.String(), `"by":"scripts/script"`) != 2 {
		t.Errorf("%v: the imported runs do not name who signed them: %s", err, again.String())
	}
	if res, err := in.Send(t.Context(), "Again?"); err != nil || res.Text != "No." {
		t.Fatalf("%v %+v; want res.Text “No.”", err, res)
	}
	if told := m.Requests()[3].Contents; asLines(told[:len(told)-1]) != asLines(want) {
		t.Errorf("the model is told %s", asLines(told))
	}
	head, asked := "{\"countersign\":1}\n", `{"role":"user","parts":[{"text":"a"}]}`
	for name, bad := range map[string]string{
		"nothing": "", "no head": `{"contents":[]}`, "no run": `{"countersign":1}`,
		"another version": strings.Replace(file.String(), `"countersign":1`, `"countersign":2`, 1),
		"a call without its response": head + `{"contents":[` + asked +
			`,{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]}`,
		"no beginning": head + `{"contents":[{"role":"model","parts":[{"text":"a"}]}]}`} {
		if _, err := other.Import(t.Context(), strings.NewReader(bad)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// FuzzImport imports arbitrary bytes. An accepted session exports the same contents again.
func FuzzImport(f *testing.F) {
	f.Add(`{"countersign":1,"title":"a"}` + "\n" + `{"contents":[{"role":"user","parts":[{"text":"a"}]},` +
		`{"role":"model","parts":[{"text":"b"}]}]}`)
	f.Add(`{"countersign":1}` + "\n" + `{"by":"x","contents":[{"role":"user","parts":[{"text":"a"}]},` +
		`{"role":"model","parts":[{"functionCall":{"name":"f"}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`)
	f.Add("{}")
	a, err := countersign.New(countersign.Options{Provider: newScript()})
	cleanup.Close(f, a, err)
	f.Fuzz(func(t *testing.T, file string) {
		s, err := a.Import(t.Context(), strings.NewReader(file))
		if err != nil {
			return
		}
		if _, err := s.History(t.Context()); err != nil {
			t.Errorf("it was taken, and cannot be told: %v", err)
		}
		var out bytes.Buffer
		if err := s.Export(t.Context(), &out); err != nil {
			t.Error(err)
		}
		if _, err := a.Import(t.Context(), &out); err != nil {
			t.Errorf("what was exported is not taken: %v\n%s", err, out.String())
		}
	})
}
