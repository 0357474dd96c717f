package webpush

import (
	"crypto/ecdh"
	"testing"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := Encoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSealAsTheRFC makes the message of RFC 8291, section 5 and appendix A, byte for byte.
func TestSealAsTheRFC(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	to := Subscription{Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
		P256dh: decode(t, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
		Auth:   decode(t, "BTBZMqHH6r4Tts7J_aSIgg")}
	if err := to.Check(); err != nil {
		t.Fatal(err)
	}
	salt := decode(t, "DGv6ra1nlYgDCS1FRnbzlw")
	sealed, err := seal(to, []byte("When I grow up, I want to be a watermelon"), salt, own)
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz" +
		"AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if got := Encoding.EncodeToString(sealed); got != want {
		t.Errorf("sealed as %s", got)
	}
	if _, err := seal(to, make([]byte, maxPlain+1), make([]byte, 16), own); err == nil {
		t.Error("a message that no push service takes was sealed")
	}
	if most, err := seal(to, make([]byte, maxPlain), make([]byte, 16), own); err != nil || len(most) != maxRecord {
		t.Errorf("the largest message has %d bytes, %v", len(most), err)
	}
}
