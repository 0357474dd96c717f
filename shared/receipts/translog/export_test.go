package translog

// Limit sets the limits of one checkpoint, one call and one query.
func (p *Publisher) Limit(batch, publish, page int) *Publisher {
	p.limits = limits{batch, publish, page}
	return p
}
