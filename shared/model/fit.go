package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What Fit leaves of the outputs of tools, in bytes of each.
const (
	olderOutput  = 4 << 10 // of all but the newest two contents of responses
	tightOutput  = 1 << 10 // of all but the newest, where that is not enough
	newestOutput = 8 << 10 // of the newest too, where it is still too much
)

// Fit brings Size to at most maxBytes. What tools answered some steps ago is always cut to its beginning: the model has
// seen it. Where that is not enough more of it is cut, then the oldest turns are left out (Bound), then the newest outputs
// are cut. The error is Bound's, where the model's own words of one turn are too much. What was cut once stays as it is.
func (c *Contents) Fit(maxBytes int) error {
	c.cutOutputs(2, olderOutput)
	if c.Size() > maxBytes {
		c.cutOutputs(1, tightOutput)
	}
	err := c.Bound(maxBytes)
	for _, limit := range []int{newestOutput, tightOutput} {
		if err == nil {
			break
		}
		c.cutOutputs(0, limit)
		err = c.Bound(maxBytes)
	}
	return err
}

// cutOutputs cuts the outputs of all contents of responses but the newest ones.
func (c *Contents) cutOutputs(newest, limit int) {
	for i := len(c.entries) - 1; i >= 0; i-- {
		e := c.entries[i]
		if e.role != User || e.words {
			continue
		}
		if newest--; newest < 0 && len(e.raw) > limit {
			c.entries[i].raw = withOutputs(e.raw, limit)
		}
	}
}

// withOutputs is a content of responses with outputs of at most limit bytes. A content that cannot be read stays.
func withOutputs(raw json.RawMessage, limit int) json.RawMessage {
	rs, err := Responses(raw)
	if err != nil {
		return raw
	}
	parts := make([]any, len(rs))
	for i, r := range rs {
		r.Result = beginning(r.Result, limit)
		if r.Error != "" {
			r.Result = nil
		}
		if parts[i], err = r.part(); err != nil {
			return raw
		}
	}
	return encodeContent(User, parts)
}

// beginning is as much of a result as fits into limit bytes of JSON, with a mark that says so.
func beginning(result json.RawMessage, limit int) json.RawMessage {
	if len(result) <= limit {
		return result
	}
	text := string(result)
	var s string
	if json.Unmarshal(result, &s) == nil {
		text = s
	}
	for n := min(limit, len(text)); n > 0; n = n * 3 / 4 {
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		out := encode(strings.ToValidUTF8(text[:n], "\uFFFD") + fmt.Sprintf(" [cut: the first %d of %d bytes]", n, len(text)))
		if len(out) <= limit {
			return out
		}
	}
	return encode("[cut]")
}
