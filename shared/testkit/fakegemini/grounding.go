package fakegemini

// Source is a page on which a turn's text is based.
type Source struct {
	Title string `json:"title"`
	URI   string `json:"uri"`
}

// grounding is groundingMetadata (ai.google.dev/api/generate-content#GroundingMetadata).
type grounding struct {
	Queries  []string  `json:"webSearchQueries,omitempty"`
	Entry    *entry    `json:"searchEntryPoint,omitempty"`
	Chunks   []chunk   `json:"groundingChunks,omitempty"`
	Supports []support `json:"groundingSupports,omitempty"`
}

type entry struct {
	Rendered string `json:"renderedContent"`
}

type chunk struct {
	Web Source `json:"web"`
}

type support struct {
	Segment segment `json:"segment"`
	Chunks  []int   `json:"groundingChunkIndices"`
}

// segment is a part of the text; its indexes count bytes.
type segment struct {
	End  int    `json:"endIndex"`
	Text string `json:"text"`
}

// grounding returns the answer's grounding metadata, or nil if it did not search.
func (a answer) grounding() *grounding {
	if !a.req.Search || len(a.Sources) == 0 {
		return nil
	}
	g := &grounding{Queries: []string{a.req.User()}, Entry: &entry{`<div class="container"></div>`},
		Supports: []support{{Segment: segment{len(a.Text), a.Text}}}}
	for i, s := range a.Sources {
		g.Chunks = append(g.Chunks, chunk{s})
		g.Supports[0].Chunks = append(g.Supports[0].Chunks, i)
	}
	return g
}
