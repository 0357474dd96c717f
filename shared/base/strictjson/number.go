package strictjson

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Canonical returns a JSON object in canonical form (RFC 8785), the form that is hashed, signed and approved. It
// returns the ValidationErrors of [Exact], which name the field.
func Canonical(object []byte) (json.RawMessage, error) {
	if err := Exact(object); err != nil {
		return nil, err
	}
	out := jsontext.Value(bytes.Clone(object))
	if err := out.Canonicalize(); err != nil {
		return nil, fault.Invalid("", "cannot be written as canonical JSON").Because(err)
	}
	return json.RawMessage(out), nil
}

// Exact checks an object as [Check] does, and also refuses numbers that canonical JSON would change. Canonical JSON
// represents numbers as doubles (RFC 8785 §3.2.2.3), which turns 9007199254740993 into 9007199254740992. Digits of a
// fraction beyond a double's precision are rounded and accepted.
func Exact(object []byte) error {
	if err := Check(object); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	for {
		tok, err := dec.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return syntax(dec, err)
		}
		if tok.Kind() != '0' {
			continue
		}
		switch number := tok.String(); {
		case tooLarge(number):
			return fault.Invalid(field(dec.StackPointer()), "a number is out of range")
		case !Survives(number):
			return fault.Invalid(field(dec.StackPointer()),
				"this number has more digits than JSON stores exactly; if the field takes a text, send it as one")
		}
	}
}

func tooLarge(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// Survives reports whether a JSON number has the same value in canonical JSON. A number below 2^53 with a fraction
// survives even if its last digits are rounded.
func Survives(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	given, kept := decimalOf(number), decimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	return given == kept || !given.whole() && math.Abs(f) < 1<<53
}

// decimal is a number as digits, without zeros at either end, and a power of ten for the last digit.
type decimal struct {
	negative bool
	digits   string // empty for zero
	exponent int
}

func (d decimal) whole() bool { return d.exponent >= 0 }

// decimalOf parses a JSON number that is within the range of a double.
func decimalOf(number string) decimal {
	number, negative := strings.CutPrefix(number, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	kept := strings.TrimRight(digits, "0")
	if kept == "" {
		return decimal{}
	}
	exponent, err := strconv.Atoi(power)
	if err != nil && power != "" { // outside the range of int: a double represents such a fraction as zero
		exponent = math.MinInt32
	}
	return decimal{negative, kept, exponent - len(fraction) + len(digits) - len(kept)}
}

// Spell replaces each number that canonical JSON would change with a string of its digits. All other bytes stay
// unchanged. Input that is not JSON, or that nests deeper than MaxDepth, is returned unchanged.
func Spell(value json.RawMessage) json.RawMessage {
	out, _ := spell(value)
	return out
}

// portableDepth is the maximum depth of a result. It leaves room for the contents, history or request around it.
const portableDepth = 32

// Portable returns a tool's result in canonical JSON (RFC 8785), for readers that represent numbers as doubles, such as
// models and web pages. A number that doubles cannot represent, such as an ID of 19 digits, becomes a string (see
// [Spell]). A result that nests deeper than 32 levels becomes one string. Any other result without a canonical
// form is returned as Spell returns it. A result that is not UTF-8 and nests too deeply becomes null.
func Portable(result json.RawMessage) json.RawMessage {
	out, depth := spell(result)
	if depth <= portableDepth {
		if canonical := jsontext.Value(bytes.Clone(out)); canonical.Canonicalize() == nil {
			return json.RawMessage(canonical)
		}
		return out
	}
	words, err := jsontext.AppendQuote(nil, result)
	if err != nil { // not UTF-8
		return json.RawMessage("null")
	}
	return json.RawMessage(words)
}

// spell is like Spell, and also returns how deep the value nests.
func spell(value json.RawMessage) (spelled json.RawMessage, depth int) {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	var out bytes.Buffer
	copied := int64(0)
	for {
		tok, err := dec.ReadToken()
		depth = max(depth, dec.StackDepth())
		switch {
		case err == io.EOF && copied == 0:
			return value, depth
		case err == io.EOF:
			out.Write(value[copied:])
			return out.Bytes(), depth
		case err != nil || depth > MaxDepth:
			return value, depth
		case tok.Kind() != '0':
			continue
		}
		number := tok.String()
		if Survives(number) {
			continue
		}
		end := dec.InputOffset()
		out.Write(value[copied : end-int64(len(number))])
		out.WriteString(strconv.Quote(number))
		copied = end
	}
}
