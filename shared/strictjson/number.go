package strictjson

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/fault"
)

// Canonical returns the canonical form (RFC 8785) of a JSON object, which is hashed, signed and approved. Its errors
// are ValidationErrors that name the field: those of Check, and a number that the canonical form cannot represent (see
// Exact).
func Canonical(object []byte) (json.RawMessage, error) {
	if err := Exact(object); err != nil {
		return nil, err
	}
	out := jsontext.Value(bytes.Clone(object))
	if err := out.Canonicalize(); err != nil {
		return nil, fault.Invalid("", "this cannot be written in the form that is signed").Because(err)
	}
	return json.RawMessage(out), nil
}

// Exact is Check, and also refuses numbers that canonical JSON does not preserve: it represents numbers as doubles (RFC
// 8785 §3.2.2.3), in which 9007199254740993 is 9007199254740992. Fraction digits beyond a double's precision are
// rounded and accepted.
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
				"this number has more digits than JSON keeps exactly; send it as a text")
		}
	}
}

func tooLarge(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// Survives reports whether a JSON number is still the same number in canonical JSON. It is also true for a number below
// 2^53 with a fraction if only its last digits are rounded.
func Survives(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	given, kept := decimalOf(number), decimalOf(strconv.FormatFloat(f, 'e', -1, 64))
	return given == kept || !given.whole() && math.Abs(f) < 1<<53
}

// decimal is a number as its digits, without zeros at either end, and the power of ten of the last digit.
type decimal struct {
	negative bool
	digits   string // empty for zero
	exponent int
}

func (d decimal) whole() bool { return d.exponent >= 0 }

// decimalOf parses a JSON number. Its exponent is bounded, because numbers out of a double's range were refused before.
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
	if err != nil && power != "" { // out of int's range, hence a fraction that a double represents as zero
		exponent = math.MinInt32
	}
	return decimal{negative, kept, exponent - len(fraction) + len(digits) - len(kept)}
}

// Spell replaces each number that canonical JSON does not preserve by a string of its digits and leaves all other bytes
// unchanged. Input that is not JSON, or is nested deeper than MaxDepth, is returned as it is.
func Spell(value json.RawMessage) json.RawMessage {
	out, _ := spell(value)
	return out
}

// portableDepth leaves room for what will contain a result: contents, a history, a request.
const portableDepth = 32

// Portable returns a tool's result for readers that represent numbers as doubles, such as a model and a page: in
// canonical JSON (RFC 8785), but for what has no such form. An id of 19 digits becomes a string (see Spell), and so
// does a whole result that is nested deeper than 32 levels.
func Portable(result json.RawMessage) json.RawMessage {
	out, depth := spell(result)
	if depth <= portableDepth {
		if canonical := jsontext.Value(bytes.Clone(out)); canonical.Canonicalize() == nil {
			return json.RawMessage(canonical)
		}
		return out
	}
	words, err := jsontext.AppendQuote(nil, result)
	if err != nil { // it is not UTF-8
		return json.RawMessage("null")
	}
	return json.RawMessage(words)
}

// spell is Spell, and also returns the depth of the value's nesting.
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
