package gemini

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"google.golang.org/genai"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/memo"
)

// Limits of the cache of encoded settings: 4 MiB in total.
const (
	halfSettings = 32
	maxSettings  = 64 << 10 // bytes of one entry; larger settings are encoded for each request
)

// settings caches the tools and settings of requests as genai encoded them. Encoding them costs more than the rest of a
// request, and an agent's settings are the same in each request. Instructions are not cached, because they contain the
// time.
type settings struct {
	encoded *memo.Cache[[sha256.Size]byte, []byte]
}

func newSettings() *settings {
	return &settings{memo.New[[sha256.Size]byte, []byte](halfSettings)}
}

// of returns the settings that genai must encode for the request. It returns nil if it has set ex.settings from the
// cache. The caller must call keep after the request.
func (s *settings) of(req model.Request, ex *exchange) (cfg *genai.GenerateContentConfig, keep func()) {
	key := keyOf(req)
	if known, ok := s.encoded.Get(key); ok {
		ex.settings = known
		return nil, func() {}
	}
	return config(req), func() {
		if ex.settings != nil && len(ex.settings) <= maxSettings {
			s.encoded.Put(key, ex.settings)
		}
	}
}

// keyOf returns a hash of all fields that config reads.
func keyOf(req model.Request) (key [sha256.Size]byte) {
	set := req.Settings
	temperature := float32(-1)
	if set.Temperature != nil {
		temperature = *set.Temperature
	}
	h := sha256.New()
	b := fmt.Appendf(nil, "%v %d %q %q %q %t %t %t", temperature, set.MaxOutputTokens, set.Calling, set.Allowed,
		set.Forced, set.Thoughts, set.Search, req.NoTools)
	h.Write(b)
	for _, t := range req.Tools {
		b = withSize(withSize(withSize(b[:0], t.Name), t.Description), t.Schema)
		h.Write(b)
	}
	h.Sum(key[:0])
	return key
}

// withSize appends the length of a text and the text, so different lists of texts have different encodings.
func withSize[T string | json.RawMessage](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(text))), text...)
}

// config returns the request's settings without the instructions. Safety settings and the amount of thinking are left
// at the service's defaults.
func config(req model.Request) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{
		Temperature:     req.Settings.Temperature,
		MaxOutputTokens: req.Settings.MaxOutputTokens,
	}
	if req.Settings.Thoughts {
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	}
	if len(req.Tools) > 0 {
		group := &genai.Tool{}
		for _, t := range req.Tools {
			group.FunctionDeclarations = append(group.FunctionDeclarations,
				&genai.FunctionDeclaration{Name: t.Name, Description: t.Description, ParametersJsonSchema: t.Schema})
		}
		c.Tools = []*genai.Tool{group}
		if calling := calling(req); calling != nil {
			c.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: calling}
		}
	}
	if req.Settings.Search {
		c.Tools = append(c.Tools, &genai.Tool{GoogleSearch: &genai.GoogleSearch{}})
	}
	return c
}

// thinks reports whether the model can return its thoughts. Gemini models since 2.5 can, except those for images and
// sound (ai.google.dev/gemini-api/docs/thinking). The service refuses a request for thoughts to any other model.
func thinks(name string) bool {
	version, ok := strings.CutPrefix(path.Base(name), "gemini-")
	for _, makes := range []string{"image", "tts", "audio", "embedding"} {
		ok = ok && !strings.Contains(version, makes)
	}
	newest := strings.HasSuffix(version, "-latest") && !strings.ContainsAny(version, "0123456789")
	return ok && (newest || version >= "2.5" && version < ":") // : is the character after 9
}

// calling returns which functions can be called, or nil for the service's default.
func calling(req model.Request) *genai.FunctionCallingConfig {
	switch set := req.Settings; {
	case req.NoTools:
		return &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}
	case set.Forced != "":
		return &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny,
			AllowedFunctionNames: []string{set.Forced}}
	case set.Calling != "":
		return &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigMode(set.Calling),
			AllowedFunctionNames: set.Allowed}
	}
	return nil
}
