package gemini

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose values are not decoded.
type object map[string]jsontext.Value

// tidy returns a response, or a chunk of a stream, with only the members that this package reads, so that no other
// member can make an answer unreadable. It reads the forms in which gateways write these members: in snake case, as
// proto3's JSON permits; numbers as strings, and enum values as numbers; arguments as JSON in a string; the response
// inside another object; an error without an object around it. Data that is not an object is returned as it is.
func tidy(data []byte) []byte {
	if usual(data) {
		return data
	}
	res, _ := membersOf(data)
	if inner, _ := membersOf(res["response"]); inner != nil && res["candidates"] == nil {
		res = inner
	}
	if res["candidates"] == nil && res["error"] == nil && res["code"] != nil && res["message"] != nil {
		return object{"error": data}.encoded()
	}
	if res == nil {
		return data
	}
	res.keep("promptFeedback", "candidates", "usageMetadata", "modelVersion", "error", "done")
	res.within("promptFeedback", func(feedback object) bool {
		feedback.keep("blockReason")
		return true
	})
	res.within("usageMetadata", func(counts object) bool {
		for name := range counts {
			counts.number(name)
		}
		return true
	})
	if res["modelVersion"].Kind() != '"' {
		delete(res, "modelVersion")
	}
	res.each("candidates", tidyCandidate)
	return res.encoded()
}

func tidyCandidate(c object) bool {
	c.keep("index", "finishReason", "content", "groundingMetadata")
	c.number("index")
	if reason := c["finishReason"]; reason.Kind() == '0' {
		c["finishReason"] = jsontext.Value(strconv.Quote(numbered(string(reason))))
	}
	if c["groundingMetadata"].Kind() != '{' {
		delete(c, "groundingMetadata")
	}
	c.within("content", func(content object) bool {
		if content["parts"].Kind() == '{' {
			content["parts"] = slices.Concat(jsontext.Value("["), content["parts"], jsontext.Value("]"))
		}
		content.each("parts", tidyPart)
		return true
	})
	return true
}

// tidyPart reports whether it has changed the part. Any other part stays as it is, byte for byte, because it is sent
// back to the service.
func tidyPart(part object) (changed bool) {
	for _, name := range []string{"inlineData", "fileData"} {
		changed = part.within(name, func(object) bool { return false }) || changed
	}
	return part.within("functionCall", func(call object) bool {
		text, err := jsontext.AppendUnquote(nil, call["args"])
		if err != nil {
			return false
		}
		if call["args"] = text; len(strings.TrimSpace(string(text))) == 0 {
			call["args"] = jsontext.Value("{}")
		}
		return true
	}) || changed
}

// numbered returns the finish reason that has the number in the Gemini API and in Vertex AI alike. The numbers of
// further reasons differ.
func numbered(number string) string {
	reasons := []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION"}
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(reasons) {
		return reasons[n]
	}
	return "OTHER"
}

// membersOf returns the members of a JSON object, or nil. renamed reports whether a name was in snake case; it is in
// camel case now.
func membersOf(v jsontext.Value) (o object, renamed bool) {
	if v.Kind() != '{' || jsonv2.Unmarshal(v, &o) != nil {
		return nil, false
	}
	for name, value := range o {
		if as := camel(name); as != name && o[as] == nil {
			o[as] = value
			delete(o, name)
			renamed = true
		}
	}
	return o, renamed
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// keep drops all other members, and those that are null.
func (o object) keep(names ...string) {
	for name, v := range o {
		if !slices.Contains(names, name) || v.Kind() == 'n' {
			delete(o, name)
		}
	}
}

// number makes the member a number, or drops it.
func (o object) number(name string) {
	v := o[name]
	if text, err := jsontext.AppendUnquote(nil, v); err == nil {
		v = jsontext.Value(text)
	}
	if v.Kind() != '0' || !v.IsValid() {
		delete(o, name)
		return
	}
	o[name] = v
}

// within changes the members of a member that is an object, and reports whether they have changed.
func (o object) within(name string, change func(object) bool) (changed bool) {
	o[name], changed = altered(o[name], change)
	if o[name] == nil {
		delete(o, name)
	}
	return changed
}

// altered returns the value with its members changed by change. A value that is not an object stays as it is.
func altered(v jsontext.Value, change func(object) bool) (now jsontext.Value, changed bool) {
	o, renamed := membersOf(v)
	if o == nil || !change(o) && !renamed {
		return v, false
	}
	return o.encoded(), true
}

// each changes the members of each object in a list.
func (o object) each(name string, change func(object) bool) {
	var list []jsontext.Value
	if o[name].Kind() != '[' || jsonv2.Unmarshal(o[name], &list) != nil {
		return
	}
	out := []byte{'['}
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		v, _ = altered(v, change)
		out = append(out, v...)
	}
	o[name] = append(out, ']')
}

// encoded returns the object as JSON. The values stay as they are, byte for byte.
func (o object) encoded() jsontext.Value {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // the name was decoded from JSON
		out = append(append(out, ':'), o[name]...)
	}
	return append(out, '}')
}
