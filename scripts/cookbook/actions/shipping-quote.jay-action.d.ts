// Generated from shipping-quote.jay-action by actiongen. Do not edit.

/** Say what it costs to send a parcel, and how many days it takes. */
export interface ShippingQuoteInput {
    /** The country of the addressee, as two letters (ISO 3166-1 alpha-2) */
    country: string;
    /** The weight of the parcel */
    grams: number;
}

export interface ShippingQuoteOutput {
    /** The price in cents of a euro */
    cents: number;
    days: number;
}
