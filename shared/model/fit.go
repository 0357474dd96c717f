package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/clip"
)

// The bytes that Fit leaves of each output of a tool.
const (
	olderOutput  = 4 << 10 // of all but the newest two contents of responses
	tightOutput  = 1 << 10 // of all but the newest, if that is not enough
	newestOutput = 8 << 10 // of the newest too, if it is still too much
)

// Fit reduces Size to at most maxBytes. The outputs of tools from some steps ago, which the model has seen, are always
// cut to their beginnings. If that is not enough they are cut further, then the oldest turns are removed
// ([Contents.Bound]), then the newest outputs are cut. If the model's own words of one turn are too large, Fit returns
// Bound's error. An output that was cut once is not cut again to the same limit.
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

// withOutputs returns a content of responses with its outputs cut to limit bytes. A content that cannot be decoded is
// returned unchanged.
func withOutputs(raw json.RawMessage, limit int) json.RawMessage {
	rs, err := Responses(raw)
	if err != nil {
		return raw
	}
	parts := make([]any, len(rs))
	for i, r := range rs {
		r.Result = truncateResult(r.Result, limit)
		if r.Error != "" {
			r.Result = nil
		}
		if parts[i], err = r.part(); err != nil {
			return raw
		}
	}
	return encodeContent(User, parts)
}

// truncateResult returns the start of a result that fits into limit bytes of JSON, with a mark where it was cut.
func truncateResult(result json.RawMessage, limit int) json.RawMessage {
	if len(result) <= limit {
		return result
	}
	text := string(result)
	var s string
	if json.Unmarshal(result, &s) == nil {
		text = s
	}
	for n := min(limit, len(text)); n > 0; n = n * 3 / 4 {
		kept := clip.Prefix(text, n)
		out := encode(strings.ToValidUTF8(kept, "\uFFFD") +
			fmt.Sprintf(" [cut: the first %d of %d bytes]", len(kept), len(text)))
		if len(out) <= limit {
			return out
		}
	}
	return encode("[cut]")
}
