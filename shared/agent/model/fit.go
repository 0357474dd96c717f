package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// The bytes that Fit leaves of each output of a tool.
const (
	olderOutput  = 4 << 10 // of all but the newest two contents of responses
	tightOutput  = 1 << 10 // of all but the newest, if that is not enough
	newestOutput = 8 << 10 // of the newest too, if it is still too much
)

// Fit reduces Size to at most maxBytes. The outputs of tools from some steps ago, which the model has seen, are always
// cut ([clip.JSON]). If that is not enough they are cut further, then the oldest turns are removed
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
		r.Result = clip.JSON(r.Result, limit)
		if r.Error != "" {
			r.Result = nil
		}
		if parts[i], err = r.part(); err != nil {
			return raw
		}
	}
	return encodeContent(User, parts)
}

// leastKept is how many bytes CutResults leaves of a result at least.
const leastKept = 2 << 10

// CutResults returns the contents with the results of tools beyond their newest bytes cut ([clip.JSON]). Calls, ids,
// names and the order stay, and so does every byte of the contents in which nothing is cut, above all of the model's.
func CutResults(contents []json.RawMessage, newest int) []json.RawMessage {
	out := slices.Clone(contents)
	for i := len(out) - 1; i >= 0; i-- {
		if !bytes.Contains(out[i], []byte(`"functionResponse"`)) {
			continue
		}
		if rs, err := Responses(out[i]); err == nil { // else of the model, which may speak of such things
			out[i], newest = cutResults(out[i], rs, newest)
		}
	}
	return out
}

// cutResults cuts the results of one content, and returns how many newest bytes are left for older ones.
func cutResults(raw json.RawMessage, rs []Response, newest int) (json.RawMessage, int) {
	cut := false
	for j := len(rs) - 1; j >= 0; j-- {
		r := &rs[j]
		size := len(r.Result) + len(r.Error)
		if size <= newest {
			newest -= size
			continue
		}
		most := max(newest, leastKept)
		newest = 0
		if len(r.Result) > most {
			r.Result, cut = clip.JSON(r.Result, most), true
		}
		if len(r.Error) > most {
			r.Error, _ = clip.Middle(r.Error, most)
			cut = true
		}
	}
	if !cut {
		return raw, newest
	}
	parts := make([]any, len(rs))
	for j, r := range rs {
		p, err := r.part()
		if err != nil {
			return raw, newest
		}
		parts[j] = p
	}
	return encodeContent(User, parts), newest
}
