package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// maxRecord is the size of the single record of a message, and maxPlain the content that fits into it. Push services
// accept 4096 bytes in total (RFC 8030 §7.2).
const (
	headerSize = 16 + 4 + 1 + pointSize
	maxRecord  = 4096
	maxPlain   = maxRecord - headerSize - 1 - 16
)

// seal encrypts a message for the browser (RFC 8291 §3, RFC 8188 §2). own must be a key pair for this message only.
func seal(s Subscription, plain, salt []byte, own *ecdh.PrivateKey) ([]byte, error) {
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("webpush: %d bytes; the limit is %d", len(plain), maxPlain)
	}
	browserKey, err := ecdh.P256().NewPublicKey(s.P256dh)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(browserKey)
	if err != nil {
		return nil, err
	}
	public := own.PublicKey().Bytes()
	input, err := hkdf.Key(sha256.New, shared, s.Auth, "WebPush: info\x00"+string(s.P256dh)+string(public), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	header := binary.BigEndian.AppendUint32(slices.Clone(salt), maxRecord)
	header = append(append(header, pointSize), public...)
	const last = 2 // the delimiter of the last record
	return gcm.Seal(header, nonce, append(slices.Clone(plain), last), nil), nil
}

// sealNew encrypts a message with a new salt and key pair.
func sealNew(s Subscription, plain []byte, random io.Reader) ([]byte, error) {
	salt := make([]byte, 16)
	if _, err := io.ReadFull(random, salt); err != nil {
		return nil, err
	}
	own, err := ecdh.P256().GenerateKey(random)
	if err != nil {
		return nil, err
	}
	return seal(s, plain, salt, own)
}
