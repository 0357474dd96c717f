package document

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
)

// Put returns the write that stores v with these fields in the document that was read. It creates the document if it
// did not exist. Otherwise it keeps what only a later release knows, so that two releases can use one store at the same
// time. Every document that is read and written back goes through Put or [Known].
func Put(d store.Doc, fields map[string]any, v any) (store.Write, error) {
	if !d.Exists() {
		return Known(d, fields, v)
	}
	if more, err := DecodeKnown(d, reflect.New(reflect.TypeOf(v)).Interface()); !more || err != nil {
		return Known(d, fields, v)
	}
	data, err := strictjson.Marshal(v)
	return store.Update(d.Path, d.Version, fields, keepLater(d.Data, data, reflect.TypeOf(v))), err
}

// Known is [Put] for a document without content of a later release: the caller has checked that there is none, or
// replaces it.
func Known(d store.Doc, fields map[string]any, v any) (store.Write, error) {
	data, err := strictjson.Marshal(v)
	if !d.Exists() {
		return store.Create(d.Path, fields, data), err
	}
	return store.Update(d.Path, d.Version, fields, data), err
}

// keepLater returns the new content of a document, of type t, with those members of its old content that t does not
// know. A later release has written them, and reads them again after this one. Content that it cannot read stays as it
// is.
func keepLater(before, after json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return keepMembers(before, after, t)
	case reflect.Slice:
		return keepInItems(before, after, t.Elem())
	}
	return after
}

// keepMembers is keepLater for an object.
func keepMembers(before, after json.RawMessage, t reflect.Type) json.RawMessage {
	var from, to map[string]json.RawMessage
	if json.Unmarshal(before, &from) != nil || json.Unmarshal(after, &to) != nil || to == nil {
		return after // such as a time, which is a text
	}
	known := map[string]reflect.Type{}
	addMembers(known, t)
	for name, value := range from {
		switch of, has := known[name]; {
		case !has:
			to[name] = value
		case to[name] != nil:
			to[name] = keepLater(value, to[name], of)
		}
	}
	data, err := strictjson.Marshal(to)
	if err != nil {
		return after
	}
	return data
}

// addMembers adds the names and types of the struct's members in JSON, with those of embedded structs.
func addMembers(known map[string]reflect.Type, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			addMembers(known, f.Type)
		case name != "" && name != "-":
			known[name] = f.Type
		}
	}
}

// keepInItems is keepLater for the items of a log, which have numbers. An item that moved to a chunk is not among them.
func keepInItems(before, after json.RawMessage, t reflect.Type) json.RawMessage {
	var from, to []json.RawMessage
	if json.Unmarshal(before, &from) != nil || json.Unmarshal(after, &to) != nil {
		return after
	}
	old := map[int64]json.RawMessage{}
	for _, item := range from {
		old[numberOf(item)] = item
	}
	for i, item := range to {
		if n := numberOf(item); n > 0 && old[n] != nil {
			to[i] = keepLater(old[n], item, t)
		}
	}
	data, err := strictjson.Marshal(to)
	if err != nil {
		return after
	}
	return data
}

// numberOf returns the number of an item of a log, or 0.
func numberOf(item json.RawMessage) int64 {
	var of struct {
		Seq int64 `json:"seq"`
	}
	_ = json.Unmarshal(item, &of) // anything else has no number
	return of.Seq
}
