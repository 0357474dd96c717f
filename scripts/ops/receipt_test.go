package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/receipts/receipt"
)

const receiptKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func TestReceiptVerify(t *testing.T) {
	dir := t.TempDir()
	signer, err := receipt.ParsePrivate(receiptKey)
	if err != nil {
		t.Fatal(err)
	}
	file, err := receipt.Issue(t.Context(), signer, receipt.Receipt{Version: 1, RunID: "r1",
		IssuedAt: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w := &deployment{t: t, env: map[string]string{"STORE": "embedded", "DATA_DIR": dir}}
	if out, _, err := w.ops("receipt-keys"); err == nil || out != "" {
		t.Errorf("without any key: %q %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "receipt-key")); err == nil {
		t.Error("receipt-keys created a key")
	}
	w.env["RECEIPT_KEY"] = receiptKey
	printed, _, err := w.ops("receipt-keys")
	if err != nil || strings.Contains(printed, receiptKey) {
		t.Fatalf("%s %v", printed, err)
	}
	other, err := json.Marshal(receipt.Keys{Keys: []receipt.Key{receipt.KeyOf(make([]byte, 32))}})
	if err != nil {
		t.Fatal(err)
	}
	w.env["RECEIPT_JWKS"] = string(other)
	both, _, err := w.ops("receipt-keys")
	if err != nil || strings.Count(both, `"kid"`) != 2 {
		t.Errorf("the earlier keys are missing: %s %v", both, err)
	}
	w.env["RECEIPT_KEY"] = ""
	keys, strangers := write("keys.json", []byte(printed)), write("others.json", other)
	for name, tt := range map[string]struct{ file, keys, says string }{
		"as it was issued": {write("a.json", append(bytes.Clone(file), '\n')), keys, "true: "},
		"another run": {write("b.json", bytes.Replace(file, []byte(`"runId":"r1"`), []byte(`"runId":"r2"`), 1)), keys,
			"changed: "},
		"by another key": {write("c.json", file), strangers, "false: "},
		"no receipt":     {write("d.json", []byte("{}")), keys, "false: "},
	} {
		out, _, err := w.ops("receipt", "verify", tt.file, "-keys", tt.keys)
		if !strings.HasPrefix(out, tt.says) || (err == nil) != (tt.says == "true: ") || err != nil && err != errFailed {
			t.Errorf("%s: %q %v", name, out, err)
		}
	}
	w.env["RECEIPT_JWKS"] = printed
	if out, _, err := w.ops("receipt", "verify", write("e.json", file)); err != nil || !strings.HasPrefix(out, "true") {
		t.Errorf("by RECEIPT_JWKS: %q %v", out, err)
	}
	if _, _, err := w.ops("receipt", "sign", write("f.json", file)); err == nil {
		t.Error("an unknown receipt command succeeded")
	}
}
