package gemini

import "context"

// Check requests the model's description, which is free. It checks that the service is reachable, the key is accepted
// and the model exists. Its errors are those of [Model.Generate]. It does not retry.
func (m *Model) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.AttemptTimeout)
	defer cancel()
	ex := &exchange{}
	if err := m.describe(withExchange(ctx, ex)); err != nil {
		return m.explain(ctx, ex, err, false).fault
	}
	return nil
}

// describe requests the description through genai, which panics on some unexpected responses.
func (m *Model) describe(ctx context.Context) (err error) {
	defer func() {
		if recover() != nil {
			err = errUnreadable
		}
	}()
	_, err = m.client.Models.Get(ctx, m.cfg.Model, nil)
	return err
}
