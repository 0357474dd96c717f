package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
)

// maxKeys is the number of keys that CHAT_KEY and ACTION_KEY can have.
const maxKeys = 4

// rotate prints the next value of a key, and nothing else, so you can pipe the output into a secret. The new key is
// used from then on, and the earlier ones stay valid. With -retire it prints the value without the earlier keys.
//
//   - chat-key: histories that pages store stay valid for 30 days. After -retire, older ones are refused, and the
//     message says why.
//   - token-key: what an earlier key encrypted stays readable. After -retire, users whose account was not linked, or
//     whose host was not added, since the rotation have to do so again. A key in Cloud KMS rotates itself.
//   - action-key: the endpoints must accept both keys before the new one signs.
//   - decision-key: prints DECISION_PUBLIC_KEYS with the public half of DECISION_KMS_KEY, the new version of the key.
//     All functions must have the list before that version signs. After -retire, only what it signed counts.
//   - webhook-keys: both keys of each endpoint sign, so an endpoint can change to the new one before -retire.
func rotate(flags *flag.FlagSet) runFunc {
	retire := flags.Bool("retire", false, "remove the earlier keys instead of adding one")
	return func(ctx context.Context, o *operator, args []string) error {
		if args[0] == "decision-key" {
			next, err := decisionKeys(ctx, o.getenv, *retire)
			if err != nil {
				return err
			}
			return o.printf("%s", next)
		}
		cfg, err := config.Load(o.getenv)
		if err != nil {
			return err
		}
		var next string
		switch args[0] {
		case "chat-key":
			next, err = nextChatKey(cfg, *retire)
		case "token-key":
			next, err = nextTokenKey(cfg, *retire)
		case "action-key":
			next, err = nextKeys("ACTION_KEY", cfg.ActionKey.Reveal(), *retire)
		case "webhook-keys":
			next, err = nextWebhookKeys(cfg.WebhookKeys.Reveal(), *retire)
		default:
			err = fmt.Errorf("rotate takes chat-key, token-key, action-key, webhook-keys or decision-key, not %q",
				args[0])
		}
		if err != nil {
			return err
		}
		return o.printf("%s", next)
	}
}

func nextChatKey(cfg config.Config, retire bool) (string, error) {
	held := cfg.ChatKey.Reveal()
	if held == "" {
		key, err := os.ReadFile(filepath.Join(cfg.DataDir, app.ChatKeyFile))
		if err != nil {
			return "", errors.New("CHAT_KEY is not set, and DATA_DIR contains no chat-key")
		}
		held = base64.StdEncoding.EncodeToString(key)
	}
	return nextKeys("CHAT_KEY", held, retire)
}

// nextKeys returns a list of keys with a new one at its beginning, or its first one alone. If the list is full, its
// last key ends.
func nextKeys(variable, held string, retire bool) (string, error) {
	if held == "" {
		return "", fmt.Errorf("%s is not set", variable)
	}
	keys := strings.Split(held, ",")
	if retire {
		if len(keys) == 1 {
			return "", fmt.Errorf("%s has one key: rotate it first, and deploy the result", variable)
		}
		return strings.TrimSpace(keys[0]), nil
	}
	fresh := make([]byte, 32)
	rand.Read(fresh)
	keys = append([]string{base64.StdEncoding.EncodeToString(fresh)}, keys...)
	return strings.Join(keys[:min(len(keys), maxKeys)], ","), nil
}

// nextWebhookKeys returns the keys of all endpoints with a new one at the beginning of each list, or the first ones
// alone. An endpoint has at most two.
func nextWebhookKeys(held string, retire bool) (string, error) {
	if held == "" {
		return "", errors.New("WEBHOOK_KEYS is not set")
	}
	var keys map[string][]string
	if err := json.Unmarshal([]byte(held), &keys); err != nil {
		return "", errors.New("WEBHOOK_KEYS is not a JSON object of lists of keys")
	}
	for name, list := range keys {
		if !retire {
			fresh := make([]byte, 32)
			rand.Read(fresh)
			list = append([]string{"whsec_" + base64.StdEncoding.EncodeToString(fresh)}, list...)
		}
		keys[name] = list[:min(len(list), map[bool]int{false: 2, true: 1}[retire])]
	}
	next, err := json.Marshal(keys)
	return string(next), err
}

func nextTokenKey(cfg config.Config, retire bool) (string, error) {
	if cfg.TokenKMSKey != "" {
		return "", errors.New("TOKEN_KMS_KEY is set: Cloud KMS rotates this key, and its earlier versions decrypt")
	}
	held := cfg.TokenKey.Reveal()
	if held == "" {
		text, err := os.ReadFile(filepath.Join(cfg.DataDir, tokenkey.File))
		if err != nil {
			return "", fmt.Errorf("TOKEN_KEY is not set, and DATA_DIR contains no %s", tokenkey.File)
		}
		held = string(text)
	}
	if retire {
		return tokenkey.Retire(held)
	}
	return tokenkey.Rotate(held)
}
