// Generated from search-products.jay-action by actiongen. Do not edit.

/** Search for products by query string. Returns matching products with IDs, names, and prices. */
export interface SearchProductsInput {
    /** Search query text */
    query: string;
    /** Maximum results to return */
    limit?: number;
}

export type SearchProductsOutput = Array<{
    _id?: string;
    name?: string;
    price?: number;
}>;
