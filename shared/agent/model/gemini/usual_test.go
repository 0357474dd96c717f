package gemini

import "testing"

// TestUsualAnswers has answers in the form that Gemini itself sends, which are read once, and answers with anything
// else, which are tidied first.
func TestUsualAnswers(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"a_b":[1]}},` +
			`"thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":` +
			`{"promptTokenCount":4,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4}]},"modelVersion":"m"}`: true,
		`{"usageMetadata":{"totalTokenCount":4},"responseId":"r"}`:                           true,
		`{"candidates":[{"content":{"parts":{"text":"a"}}}]}`:                                false,
		`{"candidates":[{"content":{"parts":[{"function_call":{"name":"f"}}]}}]}`:            false,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"{}"}}]}}]}`: false,
		`{"candidates":[{"finishReason":1}]}`:                                                false,
		`{"candidates":[{"index":"0"}]}`:                                                     false,
		`{"candidates":[],"usageMetadata":{"totalTokenCount":"4"}}`:                          false,
		`{"candidates":null}`:          false,
		`{"candidates":[],"odd":1}`:    false,
		`{"candidates":[`:              false,
		`{"error":{"code":503}}`:       false,
		`[{"candidates":[]}]`:          false,
		`{"response":{"candidates":[]`: false,
		``:                             false,
	} {
		if got := usual([]byte(answer)); got != want {
			t.Errorf("usual(%s) = %t, want %t", answer, got, want)
		}
	}
}
