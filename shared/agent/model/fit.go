package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// The sizes to which Fit cuts tool outputs, in bytes.
const (
	olderOutput  = 4 << 10 // all but the newest two contents of responses
	tightOutput  = 1 << 10 // all but the newest one, if that is not enough
	newestOutput = 8 << 10 // the newest one, as the last resort
)

// Fit reduces Size to at most maxBytes. It always cuts tool outputs from some steps ago, which the model has seen
// ([clip.JSON]). If that is not enough, it cuts them further, then removes the oldest turns ([Contents.Bound]), and
// then cuts the newest outputs. If one turn's model contents alone are too large, Fit returns the error of Bound. An
// output that was cut once is not cut again to the same limit.
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

// cutOutputs cuts the outputs in all contents of responses except the newest ones.
func (c *Contents) cutOutputs(newest, limit int) {
	for i := len(c.entries) - 1; i >= 0; i-- {
		e := c.entries[i]
		if e.role != User || e.words || e.texts != nil {
			continue
		}
		if newest--; newest < 0 && len(e.raw) > limit {
			c.entries[i].raw = withOutputs(e.raw, limit)
		}
	}
}

// withOutputs returns a content of responses with its outputs cut to limit bytes. It returns an undecodable content
// unchanged.
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

// leastKept is the minimum number of bytes that CutResults keeps of a result.
const leastKept = 2 << 10

// CutResults returns the contents with tool results cut beyond the newest bytes ([clip.JSON]). Calls, IDs, names and
// the order do not change. A content without a cut keeps all its bytes; this includes all contents of the model.
func CutResults(contents []json.RawMessage, newest int) []json.RawMessage {
	out := slices.Clone(contents)
	for i := len(out) - 1; i >= 0; i-- {
		if !bytes.Contains(out[i], []byte(`"functionResponse"`)) {
			continue
		}
		if rs, err := Responses(out[i]); err == nil { // otherwise a model content, whose text may look like a response
			out[i], newest = cutResults(out[i], rs, newest)
		}
	}
	return out
}

// cutResults cuts the results of one content. It returns how many of the newest bytes are left for older results.
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
