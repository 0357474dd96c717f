package gemini_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestSources checks that an answer includes the pages of a search, as one response and as a stream, and none without a
// search.
func TestSources(t *testing.T) {
	r := newRig(t, answering(fakegemini.Turn{Text: "It is cloudy in London.", Sources: []fakegemini.Source{
		{Title: "a.example", URI: "https://a.example/r"}, {Title: "b", URI: "https://b.example/"},
		{Title: "a.example", URI: "https://a.example/r"}}}), nil)
	want := []model.Source{{Title: "a.example", URL: "https://a.example/r"}, {Title: "b", URL: "https://b.example/"}}
	for _, delta := range []func(string){nil, func(string) {}} {
		reply, err := r.Generate(t.Context(), model.Request{Contents: hello, Settings: model.Settings{Search: true}},
			delta)
		if err != nil || !slices.Equal(reply.Sources, want) {
			t.Errorf("%+v, %v; want reply.Sources %v", reply, err, want)
		}
		if reply, err = r.Generate(t.Context(), model.Request{Contents: hello}, delta); err != nil ||
			len(reply.Sources) > 0 {
			t.Errorf("without a search: %+v, %v", reply, err)
		}
	}
}

// TestOddGrounding reads answers whose grounding is not about pages.
func TestOddGrounding(t *testing.T) {
	for _, grounding := range []string{`null`, `{}`, `{"groundingChunks":null}`,
		`{"groundingChunks":[{"maps":{"uri":"x"}}]}`,
		`{"groundingChunks":[{"web":null},{"web":{"title":"no address"}}]}`, `{"webSearchQueries":["x"]}`} {
		r := newRig(t, answering(fakegemini.Turn{
			Body: `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]},` +
				`"finishReason":"STOP","groundingMetadata":` + grounding + `}]}`}), nil)
		if reply, err := r.Generate(t.Context(), model.Request{Contents: hello}, nil); err != nil ||
			len(reply.Sources) > 0 {
			t.Errorf("%s: %+v, %v", grounding, reply, err)
		}
	}
}

// TestRecordedSources reads the sources of recorded searches.
func TestRecordedSources(t *testing.T) {
	for file, want := range map[string]int{
		"vertexai-sdk-test-data/googleai-unary-success-google-search-grounding.200.json":                   2,
		"vertexai-sdk-test-data/vertexai-unary-success-google-search-grounding.200.json":                   2,
		"vertexai-sdk-test-data/googleai-unary-success-google-maps-grounding.200.json":                     0,
		"pydantic-ai/test_tool_choice_matrix-test_google_native_tool_only_web_search_completes-1.200.json": 2} {
		body, err := os.ReadFile(filepath.Join(recordedDir(t), file))
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, answering(fakegemini.Turn{Body: string(body)}), nil)
		reply, err := r.Generate(t.Context(), model.Request{Contents: hello}, nil)
		if err != nil || len(reply.Sources) != want {
			t.Errorf("%s: %v, %v; want len(reply.Sources) %v", file, reply, err, want)
		}
	}
}

// ask sends a body to the fake and returns the body of its answer.
func ask(t *testing.T, s *fakegemini.Server, body string) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/v1beta/models/fake:generateContent?key=k", strings.NewReader(body)))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s; want w.Code %v", w.Code, w.Body, http.StatusOK)
	}
	return w.Body.Bytes()
}

// TestFakeGroundingForm checks that the fake's search results have the form of Google's own type.
func TestFakeGroundingForm(t *testing.T) {
	var res struct {
		Candidates []struct {
			GroundingMetadata json.RawMessage `json:"groundingMetadata"`
		} `json:"candidates"`
	}
	body := ask(t, fakegemini.New(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "Grüße.", Sources: []fakegemini.Source{{Title: "a", URI: "https://a.example/"}}}
	}), `{"contents":[{"role":"user","parts":[{"text":"hello"}]}],"tools":[{"googleSearch":{}}]}`)
	if err := json.Unmarshal(body, &res); err != nil {
		t.Fatal(err)
	}
	var g genai.GroundingMetadata
	dec := json.NewDecoder(bytes.NewReader(res.Candidates[0].GroundingMetadata))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		t.Fatal(err)
	}
	if s := g.GroundingSupports[0]; g.WebSearchQueries[0] != "hello" || g.GroundingChunks[0].Web.URI == "" ||
		s.Segment.EndIndex != int32(len("Grüße.")) || s.GroundingChunkIndices[0] != 0 {
		t.Errorf("%+v", g)
	}
}
