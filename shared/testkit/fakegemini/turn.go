package fakegemini

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// A Call is a function call made by a ModelFunc.
type Call struct {
	Name string
	Args any    // marshalled to an object; a json.RawMessage is sent as it is; nil sends no args
	ID   string // empty: generated, as by Gemini 3
}

// A File is a picture or another file in an answer.
type File struct {
	Type string `json:"mimeType"`
	Data []byte `json:"data"`
}

// A Turn is the answer of a ModelFunc. The zero Turn is a candidate without parts and with the finish reason STOP.
type Turn struct {
	Thought string // a thought part before everything else
	Text    string
	Files   []File // pictures, after the text
	Calls   []Call
	Finish  string // empty: STOP, or UNEXPECTED_TOOL_CALL for calls in mode NONE
	Block   string // promptFeedback.blockReason instead of a candidate
	Usage   *Usage // nil: counted from the lengths

	Sources []Source // the sources of the text; sent if the request allows search

	Pieces int           // number of chunks of Text in a stream; 0: one for each word
	Delay  time.Duration // delay before the answer, and in a stream before each chunk

	// an HTTP error instead of an answer; Body is sent unchanged, or Google's error shape if it is empty
	Status int
	Header http.Header // further headers, such as Retry-After
	Body   string      // with Status 0 or 200: the whole body, verbatim, in place of everything above
	Hangup bool        // close the connection: before any byte, or in a stream in the middle of Text
}

// Usage is usageMetadata.
type Usage struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	ThoughtsTokenCount      int `json:"thoughtsTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount"`
}

// Content returns the turn as a model content, with IDs, and with the signature on the first call. The seed makes the
// IDs differ between the turns of a conversation.
func (t Turn) Content(seed []byte, gen Generation) json.RawMessage { return t.ContentBy("", seed, gen) }

// ContentBy is like [Turn.Content] with the signature of one model of one service. Other models and services do not
// accept it.
func (t Turn) ContentBy(signer string, seed []byte, gen Generation) json.RawMessage {
	return encode(Content{Role: "model", Parts: t.parts(signer, seed, gen, []string{t.Text})})
}

func (t Turn) parts(signer string, seed []byte, gen Generation, texts []string) []Part {
	parts := []Part{}
	if t.Thought != "" {
		parts = append(parts, Part{Text: &t.Thought, Thought: true})
	}
	for i := range texts {
		if texts[i] != "" {
			parts = append(parts, Part{Text: &texts[i]})
		}
	}
	first := len(parts)
	for _, f := range t.Files {
		parts = append(parts, Part{InlineData: encode(f)})
	}
	for i, c := range t.Calls {
		fc := &FunctionCall{ID: c.ID, Name: c.Name, Args: c.args()}
		if fc.ID == "" && gen == Gemini3 {
			fc.ID = callID(seed, i)
		}
		parts = append(parts, Part{FunctionCall: fc})
	}
	for i := first; i < len(parts) && gen == Gemini3 && i <= first+len(t.Files); i++ { // each file, and the first call
		parts[i].ThoughtSignature = signOf(signer, parts, i)
	}
	return parts
}

func (c Call) args() json.RawMessage {
	if c.Args == nil {
		return nil
	}
	return encode(c.Args)
}

// pieces splits the text for a stream.
func (t Turn) pieces() []string {
	if t.Pieces == 1 || t.Text == "" {
		return []string{t.Text}
	}
	words := strings.SplitAfter(t.Text, " ")
	n := len(words)
	if t.Pieces > 0 {
		n = min(n, t.Pieces)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = strings.Join(words[i*len(words)/n:(i+1)*len(words)/n], "")
	}
	return out
}

func (t Turn) finish(noTools bool) string {
	switch {
	case t.Finish != "":
		return t.Finish
	case noTools && len(t.Calls) > 0:
		return "UNEXPECTED_TOOL_CALL"
	}
	return "STOP"
}

func (t Turn) usage(prompt int) *Usage {
	if t.Usage != nil {
		return t.Usage
	}
	u := &Usage{PromptTokenCount: prompt/4 + 1, CandidatesTokenCount: len(t.Text)/4 + 8*len(t.Calls) + 1,
		ThoughtsTokenCount: len(t.Thought) / 4}
	u.TotalTokenCount = u.PromptTokenCount + u.CandidatesTokenCount + u.ThoughtsTokenCount
	return u
}

// callID returns a short ID of letters and digits, like the service's.
func callID(seed []byte, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x/%d", sha256.Sum256(seed), i))
	return hex.EncodeToString(sum[:4])
}

// signed is the prefix of every signature of the fake.
const signed = "fake"

// signOf returns the signature of part i: over the file in it, or over all calls.
func signOf(signer string, parts []Part, i int) string {
	if parts[i].InlineData != nil {
		return sign(signer, parts[i:i+1])
	}
	return sign(signer, slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.InlineData != nil }))
}

// sign returns a signature over the files and calls of a turn, which detects one that was dropped, added or changed. It
// depends only on them and the signer, so a restarted fake recognises its own signatures.
func sign(signer string, parts []Part) string {
	mac := hmac.New(sha256.New, []byte("fakegemini"+signer))
	for _, p := range parts {
		if p.FunctionCall != nil {
			mac.Write(canonical(p.FunctionCall))
		}
		if p.InlineData != nil {
			mac.Write(canonicalFile(p.InlineData))
		}
	}
	return base64.StdEncoding.EncodeToString(mac.Sum([]byte(signed)))
}

// canonical returns the same form for every encoding of a call, because stores may change the escapes and white space
// of JSON.
func canonical(c *FunctionCall) []byte {
	var args any
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.UseNumber()
	if err := dec.Decode(&args); err != nil {
		args = nil // no arguments were sent
	}
	return encode([]any{c.ID, c.Name, args})
}

// canonicalFile returns the same form for every encoding of a file.
func canonicalFile(data json.RawMessage) []byte {
	var f File
	_ = json.Unmarshal(data, &f) // a file that cannot be decoded has no bytes
	return encode(f)
}

// encode is like json.Marshal without escapes for HTML, for values of this package.
func encode(v any) json.RawMessage {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakegemini: a turn is invalid JSON: %v", err))
	}
	return b
}
