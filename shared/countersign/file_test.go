package countersign_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestFileOfAnswer reads a picture of an answer from the result. The next prompt of the session sends it back with its
// signature, which the fake of Gemini checks.
func TestFileOfAnswer(t *testing.T) {
	picture := png + strings.Repeat("p", 100)
	fake := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		if r.User() == "Paint." {
			return fakegemini.Turn{Text: "Here.", Files: []fakegemini.File{{Type: "image/png", Data: []byte(picture)}}}
		}
		return fakegemini.Turn{Text: "It is blue."}
	})
	s := newAgent(t, countersign.Options{Provider: countersign.Gemini(countersign.GeminiConfig{
		APIKey: "k-0000000000000000000000000000000000000", BaseURL: newServer(t, fake)})}).NewSession()
	res, err := s.Send(t.Context(), "Paint.")
	if err != nil || res.Text != "Here." || len(res.Files) != 1 || res.Files[0].Name != "answer-1.png" {
		t.Fatalf("%+v, %v; want one file", res, err)
	}
	if got, err := s.Read(t.Context(), res.Files[0]); err != nil || string(got) != picture {
		t.Errorf("the file is read as %q, %v; want the picture", got, err)
	}
	if res, err = s.Send(t.Context(), "Which colour?"); err != nil || res.Text != "It is blue." || len(res.Files) != 0 {
		t.Fatalf("%+v, %v; want an answer without files", res, err)
	}
	requests := fake.Requests()
	sent := asLines(requests[1].Raw)
	if !strings.Contains(sent, strings.TrimSuffix(inline("image/png", picture), "}")) {
		t.Errorf("the model does not get its picture back: %s", sent)
	}
	if refused := fake.Refused(); len(refused) > 0 {
		t.Errorf("refused: %q; want no refused request", refused)
	}
}
